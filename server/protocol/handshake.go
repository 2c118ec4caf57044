package protocol

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// refusedConnect is a connection that is not let in: what the client is told, and how it is closed.
type refusedConnect struct {
	answer *Error // nil: nothing is answered
	id     string
	end    closing
}

// admitted is a connection that was let in.
type admitted struct {
	requestID string
	version   int
	client    Client
	role      identity.Role
	scopes    []string
	method    string // how it proved itself
	deviceID  string // proven; "" if it showed none
	token     string // the device's own, for its answer
	issued    time.Time
	user      string // with trusted-proxy
	at        door.Source
}

// handshake is one attempt to connect.
type handshake struct {
	server    *Server
	keeper    *doorkeeper
	at        door.Source
	header    http.Header
	challenge string

	id     string
	params connectParams
	role   identity.Role
	scopes []string
	shared standing
}

// connect reads the first frame of a connection and checks it. The order of the checks is part of the protocol: it
// says which error a client sees.
func (h *handshake) connect(ctx context.Context, raw []byte) (*admitted, *refusedConnect) {
	request, err := readRequest(raw)
	if err != nil {
		return nil, &refusedConnect{end: closing{closePolicy, "invalid request frame"}}
	}
	h.id = request.ID
	if request.Method != "connect" {
		return nil, h.refuse(invalid("invalid handshake: first request must be connect"))
	}
	if wrong := readParams("connect", h.server.connectCheck, request.Params, &h.params); wrong != nil {
		return nil, h.refuse(wrong)
	}
	version, ok := h.params.version()
	if !ok {
		refused := h.refuse(&Error{
			Code: codeInvalid, Message: "protocol mismatch",
			Details: map[string]any{"code": "PROTOCOL_MISMATCH", "expectedProtocol": newestVersion},
		})
		refused.end.code = closeProtocol
		return nil, refused
	}
	if h.role, ok = h.params.role(); !ok {
		return nil, h.refuse(invalid("invalid role"))
	}
	if !h.originAllowed() {
		wrong := withDetail(invalid("origin not allowed: add it to gateway.controlUi.allowedOrigins if the page is yours"), "ORIGIN_NOT_ALLOWED")
		wrong.Details["reason"] = "origin"
		return nil, h.refuse(wrong)
	}
	h.scopes = h.params.scopes()
	h.shared = h.keeper.judge(ctx, h.at, h.header, h.params.Auth.Token, h.params.Auth.Password)
	in, refused := h.identify(ctx)
	if refused != nil {
		return nil, refused
	}
	in.requestID, in.version, in.client, in.role, in.at = h.id, version, h.params.Client, h.role, h.at
	return in, nil
}

// originAllowed checks where a page comes from. A page is checked if it says that it is one, or if its client can only
// be one.
func (h *handshake) originAllowed() bool {
	isPage := h.at.HasOrigin && (!h.at.Forwarded || !h.at.ByProxy) || h.params.Client.controlUI() || h.params.Client.webchat()
	if !isPage {
		return true
	}
	ui := h.keeper.config.ControlUI
	return door.OriginRules{Allowed: ui.AllowedOrigins, HostFallback: ui.HostFallback}.Accepts(h.at.Origin, h.at.Host)
}

// identify checks the credential, with a device or without.
func (h *handshake) identify(ctx context.Context) (*admitted, *refusedConnect) {
	if h.params.Device == nil {
		return h.withoutDevice()
	}
	key, err := h.params.proof(h.role).Verify(h.challenge, time.Now())
	if err != nil {
		return nil, h.refuse(proofError(err))
	}
	return h.withDevice(ctx, key)
}

// withoutDevice lets in who proved a shared secret, and a console behind a proxy that signs people in.
func (h *handshake) withoutDevice() (*admitted, *refusedConnect) {
	operator := h.role == identity.RoleOperator
	if h.shared.wrong || h.shared.reason == detailLimited {
		return nil, h.unauthorized(h.shared.reason, h.shared.retry, classShared)
	}
	byProxy := h.shared.ok && h.shared.method == ModeTrustedProxy && operator && h.params.Client.controlUI()
	insecure := h.keeper.config.ControlUI.AllowInsecureAuth && h.at.Local()
	switch {
	case byProxy:
		h.scopes = []string{} // whoever is behind the proxy has proven no scope
	case h.params.Client.controlUI() && !insecure:
		return nil, h.refuse(withDetail(invalid("control ui requires device identity (use HTTPS or localhost secure context)"), "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"))
	case !h.shared.ok && (h.params.Auth.Token != "" || h.params.Auth.Password != ""):
		// It came with a secret, if only of another kind than the gateway wants: that is what is wrong with it.
		return nil, h.unauthorized(h.shared.reason, h.shared.retry, "")
	case !h.shared.shared || !operator:
		refused := h.refuse(withDetail(&Error{Code: codeNotPaired, Message: "device identity required"}, "DEVICE_IDENTITY_REQUIRED"))
		return nil, refused
	}
	h.keeper.forgive(h.at, classShared)
	return &admitted{scopes: h.scopes, method: h.shared.method, user: h.shared.user}, nil
}

// withDevice lets in a device that is paired for what it asks for, and that has the shared secret or its own token.
func (h *handshake) withDevice(ctx context.Context, key ed25519.PublicKey) (*admitted, *refusedConnect) {
	pairings := h.server.pairings
	method := h.shared.method
	if !h.shared.ok {
		if refused := h.ownToken(); refused != nil {
			return nil, refused
		}
		method = "device-token"
		h.keeper.forgive(h.at, classDevice)
	} else {
		h.keeper.forgive(h.at, classShared)
	}
	wants := identity.PairRequest{
		DeviceID: h.params.Device.ID, Key: key, Name: h.params.Client.DisplayName, Platform: h.params.Client.Platform,
		Family: h.params.Client.DeviceFamily, ClientID: h.params.Client.ID, Mode: h.params.Client.Mode, Role: h.role,
		Scopes: h.scopes, IP: addressOf(h.at.Client),
	}
	if reason := pairings.Needs(&wants); reason != "" {
		wants.Reason = reason
		if refused := h.pair(ctx, &wants); refused != nil {
			return nil, refused
		}
	}
	if err := pairings.Connected(ctx, &wants); err != nil {
		return nil, h.broken(err)
	}
	token, issued, err := pairings.Credential(ctx, wants.DeviceID, h.role, h.scopes)
	if err != nil {
		return nil, h.broken(err)
	}
	return &admitted{
		scopes: h.scopes, method: method, user: h.shared.user, deviceID: wants.DeviceID, token: token, issued: issued,
	}, nil
}

// ownToken checks the device's own token where the shared secret was not right.
func (h *handshake) ownToken() *refusedConnect {
	auth := &h.params.Auth
	explicit := auth.DeviceToken != ""
	candidate := auth.DeviceToken
	if !explicit {
		candidate = auth.Token
	}
	shared := func() *refusedConnect { return h.unauthorized(h.shared.reason, h.shared.retry, classShared) }
	if candidate == "" {
		return shared()
	}
	if wait, locked := h.keeper.locked(h.at, classDevice); locked {
		return h.unauthorized(detailLimited, wait, "")
	}
	err := h.server.pairings.CheckCredential(h.params.Device.ID, h.role, h.scopes, candidate)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, identity.ErrDeviceScope):
		return h.unauthorized(detailDeviceScope, 0, "")
	case explicit:
		if h.shared.wrong {
			h.keeper.blame(h.at, classShared)
		}
		return h.unauthorized(detailDeviceToken, 0, classDevice)
	}
	return shared()
}

// pair lets a device in that is not paired for what it asks for, if nobody needs to be asked; else it makes it wait.
func (h *handshake) pair(ctx context.Context, wants *identity.PairRequest) *refusedConnect {
	pairings := h.server.pairings
	if h.silent(wants.Reason) {
		if err := pairings.PairSilently(ctx, *wants); err != nil {
			return h.broken(err)
		}
		return nil
	}
	request, err := pairings.Request(*wants)
	if err != nil {
		return h.refuse(unavailable("%s", err))
	}
	return h.refuse(&Error{Code: codeNotPaired, Message: "pairing required", Details: map[string]any{
		"code": "PAIRING_REQUIRED", "requestId": request.ID, "reason": string(wants.Reason),
	}})
}

// silent reports whether a device is paired without asking. That gives it nothing that the shared secret, which lies on
// this machine, does not give anyway: what only people may do needs a person's word.
func (h *handshake) silent(reason identity.PairReason) bool {
	page := h.at.HasOrigin && !h.params.Client.controlUI() && !h.params.Client.webchat()
	proven := h.shared.shared || h.shared.ok && h.shared.method == ModeNone
	switch {
	case !h.at.Local() || page:
		return false
	case reason == identity.NotPaired:
		return h.shared.ok
	case reason == identity.ScopeUpgrade:
		return proven
	}
	return false
}

// unauthorized refuses a credential; class is where it is counted, "" if it is not.
func (h *handshake) unauthorized(reason string, retry time.Duration, class string) *refusedConnect {
	if reason == "" {
		reason = detailUnauthorized
	}
	if class == classDevice || class == classShared && h.shared.wrong {
		h.keeper.blame(h.at, class)
		h.server.log.Warn("a credential over a WebSocket was refused", "why", reason, "from", addressOf(h.at.Client), "program", userAgent(h.header))
	}
	wrong := withDetail(invalid("unauthorized: %s", reasonText[reason]), reason)
	wrong.Details["authReason"] = authReason[reason]
	if retry > 0 {
		wrong.Retryable, wrong.RetryAfterMs = true, retry.Milliseconds()
	}
	return h.refuse(wrong)
}

// reasonText says for people what is wrong. Clients look for "device token mismatch" and drop the token they keep then,
// so no other reason may contain it.
var reasonText = map[string]string{
	detailTokenMissing:     "gateway token missing (make one: toolward token create --gateway)",
	detailTokenMismatch:    "gateway token mismatch",
	detailTokenUnset:       "gateway token not configured (make one: toolward token create --gateway)",
	detailPasswordMissing:  "gateway password missing",
	detailPasswordMismatch: "gateway password mismatch",
	detailPasswordUnset:    "gateway password not configured",
	detailDeviceToken:      "device token mismatch",
	detailDeviceScope:      "the device's credential does not cover the role or scopes",
	detailLimited:          "too many failed authentication attempts (retry later)",
	detailUnauthorized:     "the credential was refused",
}

var authReason = map[string]string{
	detailTokenMissing: "token_missing", detailTokenMismatch: "token_mismatch", detailTokenUnset: "token_missing_config",
	detailPasswordMissing: "password_missing", detailPasswordMismatch: "password_mismatch", detailPasswordUnset: "password_missing_config",
	detailDeviceToken: "device_token_mismatch", detailDeviceScope: "scope_mismatch", detailLimited: "rate_limited",
	detailUnauthorized: "unauthorized",
}

func withDetail(e *Error, code string) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details["code"] = code
	return e
}

func proofError(err error) *Error {
	code, reason := "DEVICE_AUTH_INVALID", "device-auth-invalid"
	var wrong *identity.ProofError
	if errors.As(err, &wrong) {
		code, reason = "DEVICE_AUTH_"+wrong.Code, wrong.Reason
	}
	e := withDetail(invalid("%s", err), code)
	e.Details["reason"] = reason
	return e
}

// broken refuses because the store failed. Why is the log's.
func (h *handshake) broken(err error) *refusedConnect {
	h.server.log.Error("a device could not be let in", "err", err)
	return h.refuse(unavailable("the device cannot be looked up now"))
}

func (h *handshake) refuse(answer *Error) *refusedConnect {
	return &refusedConnect{answer: answer, id: h.id, end: closing{closePolicy, shortReason(answer.Message)}}
}

// challengeFrame is the first frame of every connection.
func challengeFrame(nonce string, now time.Time) []byte {
	raw, _ := json.Marshal(map[string]any{
		"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": nonce, "ts": now.UnixMilli()},
	})
	return raw
}
