package protocol

import (
	"context"
	"errors"
	"strings"

	"github.com/toolward/toolward/identity"
)

type pairParams struct {
	RequestID string `json:"requestId"`
	DeviceID  string `json:"deviceId"`
}

func (r *call) listDevices(context.Context, *struct{}) (any, *Error) {
	pending, paired := r.server.pairings.List()
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
	d, err := r.server.pairings.Approve(ctx, r.by, strings.TrimSpace(p.RequestID))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"requestId": p.RequestID, "device": deviceWire(&d)}, nil
}

func (r *call) rejectDevice(_ context.Context, p *pairParams) (any, *Error) {
	request, err := r.server.pairings.Reject(r.by, strings.TrimSpace(p.RequestID))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"requestId": request.ID, "deviceId": request.DeviceID}, nil
}

func (r *call) removeDevice(ctx context.Context, p *pairParams) (any, *Error) {
	if err := r.server.pairings.Remove(ctx, r.by, strings.TrimSpace(p.DeviceID)); err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"deviceId": p.DeviceID}, nil
}

type tokenParams struct {
	DeviceID string   `json:"deviceId"`
	Role     string   `json:"role"`
	Scopes   []string `json:"scopes"`
}

func (r *call) manager() identity.Caller {
	return identity.Caller{By: r.by, Device: r.admitted.deviceID, Scopes: r.scopes()}
}

// rotateToken replaces a device's token. The new one is told to that device only.
func (r *call) rotateToken(ctx context.Context, p *tokenParams) (any, *Error) {
	token, scopes, issued, err := r.server.pairings.Rotate(ctx, r.manager(), p.DeviceID, identity.Role(p.Role), p.Scopes)
	if err != nil {
		return nil, r.pairError(err)
	}
	out := map[string]any{"deviceId": p.DeviceID, "role": p.Role, "scopes": emptyNotNil(scopes), "rotatedAtMs": issued.UnixMilli()}
	if p.DeviceID == r.admitted.deviceID {
		out["token"] = token
	}
	return out, nil
}

func (r *call) revokeToken(ctx context.Context, p *tokenParams) (any, *Error) {
	at, err := r.server.pairings.Revoke(ctx, r.manager(), p.DeviceID, identity.Role(p.Role))
	if err != nil {
		return nil, r.pairError(err)
	}
	return map[string]any{"deviceId": p.DeviceID, "role": p.Role, "revokedAtMs": at.UnixMilli()}, nil
}

func (r *call) pairError(err error) *Error {
	switch {
	case errors.Is(err, identity.ErrNotSignedIn):
		return r.personNeeded("pair devices")
	case errors.Is(err, identity.ErrScopeHeld):
		return r.forbidden(err.Error(), map[string]any{"code": "MISSING_SCOPE"})
	case errors.Is(err, identity.ErrNoDevice), errors.Is(err, identity.ErrNoRequest), errors.Is(err, identity.ErrDeviceScope), errors.Is(err, identity.ErrTooManyPair):
		return invalid("%s", err)
	}
	r.server.log.Error("a device could not be changed", "err", err)
	return unavailable("the device cannot be changed now")
}
