package protocol

import (
	"context"
	"strings"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
)

type pairParams struct {
	RequestID string `json:"requestId"`
	DeviceID  string `json:"deviceId"`
}

func (r *call) listDevices(context.Context, *struct{}) (any, *Error) {
	// Whoever has the scope sees them, person or not: a program that pairs others must know which are there.
	v := r.visitor()
	v.Holds = []desk.Operation{desk.SeeDevices}
	pending, paired, err := r.server.desk.Devices(v)
	if err != nil {
		return nil, r.pairError(err)
	}
	waits, known := []any{}, []any{}
	for i := range pending {
		waits = append(waits, requestWire(&pending[i]))
	}
	for i := range paired {
		known = append(known, deviceWire(&paired[i]))
	}
	return map[string]any{"pending": waits, "paired": known}, nil
}

// deviceWire is a paired device as clients see it. Nothing of it could be used to impersonate the device.
func deviceWire(d *identity.PairedDevice) map[string]any {
	tokens := []any{}
	for _, role := range []identity.Role{identity.RoleOperator, identity.RoleNode} {
		if t, have := d.Tokens[role]; have {
			tokens = append(tokens, map[string]any{
				"role": role, "scopes": emptyNotNil(t.Scopes), "createdAtMs": t.Created.UnixMilli(), "rotatedAtMs": msOrNil(t.Rotated),
				"revokedAtMs": msOrNil(t.Revoked), "lastUsedAtMs": msOrNil(t.Used),
			})
		}
	}
	wire := map[string]any{
		"deviceId": d.ID, "displayName": textOrNil(d.Name), "platform": textOrNil(d.Platform), "deviceFamily": textOrNil(d.Family),
		"clientId": textOrNil(d.ClientID), "clientMode": textOrNil(d.Mode), "roles": d.Roles, "scopes": emptyNotNil(d.Scopes),
		"approvedScopes": emptyNotNil(d.Scopes), "vouchedScopes": emptyNotNil(d.Vouched), "vouchedBy": textOrNil(d.Person),
		"remoteIp": textOrNil(d.IP), "tokens": tokens, "createdAtMs": d.Created.UnixMilli(), "approvedAtMs": d.Approved.UnixMilli(),
		"lastSeenAtMs": msOrNil(d.Seen),
	}
	if len(d.Roles) > 0 {
		wire["role"] = d.Roles[0]
	}
	return wire
}

func (r *call) approveDevice(ctx context.Context, p *pairParams) (any, *Error) {
	d, err := r.server.desk.ApproveDevice(ctx, r.visitor(), strings.TrimSpace(p.RequestID))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"requestId": p.RequestID, "device": deviceWire(&d)}, nil
}

func (r *call) rejectDevice(ctx context.Context, p *pairParams) (any, *Error) {
	request, err := r.server.desk.RejectDevice(ctx, r.visitor(), strings.TrimSpace(p.RequestID))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"requestId": request.ID, "deviceId": request.DeviceID}, nil
}

func (r *call) removeDevice(ctx context.Context, p *pairParams) (any, *Error) {
	if err := r.server.desk.RemoveDevice(ctx, r.visitor(), strings.TrimSpace(p.DeviceID)); err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"deviceId": p.DeviceID}, nil
}

type tokenParams struct {
	DeviceID string   `json:"deviceId"`
	Role     string   `json:"role"`
	Scopes   []string `json:"scopes"`
}

// rotateToken replaces a device's token. The new one is told to that device only.
func (r *call) rotateToken(ctx context.Context, p *tokenParams) (any, *Error) {
	token, err := r.server.desk.RotateDeviceToken(ctx, r.visitor(), p.DeviceID, identity.Role(p.Role), p.Scopes)
	if err != nil {
		return nil, r.pairError(err)
	}
	out := map[string]any{"deviceId": p.DeviceID, "role": p.Role, "scopes": emptyNotNil(token.Scopes), "rotatedAtMs": token.Issued.UnixMilli()}
	if p.DeviceID == r.admitted.deviceID {
		out["token"] = token.Secret
	}
	return out, nil
}

func (r *call) revokeToken(ctx context.Context, p *tokenParams) (any, *Error) {
	at, err := r.server.desk.RevokeDeviceToken(ctx, r.visitor(), p.DeviceID, identity.Role(p.Role))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"deviceId": p.DeviceID, "role": p.Role, "revokedAtMs": at.UnixMilli()}, nil
}

func (r *call) pairError(err error) *Error {
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return r.personNeeded(desk.PairDevices.Right())
	case desk.ScopeHeld:
		return r.forbidden(err.Error(), map[string]any{"code": "MISSING_SCOPE"})
	case desk.Unknown, desk.Invalid:
		return invalid("%s", err)
	case desk.Locked:
		return unavailable("%s", err)
	}
	r.server.log.Error("a device could not be changed", "err", err)
	return unavailable("the device cannot be changed now")
}
