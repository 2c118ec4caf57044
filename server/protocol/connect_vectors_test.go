package protocol

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/server/door"
)

func closeCode(err error) int {
	var end websocket.CloseError
	if errors.As(err, &end) {
		return int(end.Code)
	}
	return -1
}

// symbolicDevice is a device as the vectors describe it.
type symbolicDevice struct {
	Valid          *bool
	Paired         *bool
	PairedRoles    []identity.Role
	PairedScopes   []string
	PairedPlatform string
	PairedFamily   string
	ClaimedPlatform,
	ClaimedFamily string
	Token                           string
	TokenScopes                     []string
	TokenRevoked                    bool
	ID, Nonce, Signature, PublicKey *string
	SignedAt                        *int64
	SignedAtOffsetMs                int64
}

func TestConnectAuthVectors(t *testing.T) {
	runVectors(t, "connect_auth", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Auth struct {
				Mode, Token, Password string
				TrustedProxy          TrustedProxy
			}
			IP, Host, Origin               string
			Headers                        map[string]string
			AllowedOrigins, TrustedProxies []string
			AllowInsecureAuth              bool
			AllowHostHeaderOriginFallback  bool
			PriorFailures                  int
			Connect                        map[string]json.RawMessage
		}
		gatetest.Decode(t, input, &in)
		w := newWorld(t, Config{
			Auth: Auth{Mode: in.Auth.Mode, Token: in.Auth.Token, Password: in.Auth.Password, TrustedProxy: in.Auth.TrustedProxy}, TrustedProxies: in.TrustedProxies,
			ControlUI: ControlUI{in.AllowedOrigins, in.AllowInsecureAuth, in.AllowHostHeaderOriginFallback},
		})
		watcher := make(chan identity.PairEvent, 16)
		w.pairings.Watch(func(e identity.PairEvent) { watcher <- e })
		from := visit{ip: in.IP, host: in.Host, origin: in.Origin, header: in.Headers}
		if from.ip == "" {
			from.ip = "127.0.0.1"
		}
		at := door.Source{}
		at.Client = mustAddr(t, from.ip)
		at.HasOrigin = in.Origin != ""
		for range in.PriorFailures {
			w.Server.keeper.blame(at, classShared)
		}
		c := w.dial(from)
		params := hello()
		for name, raw := range in.Connect {
			if name == "device" {
				continue
			}
			var v any
			must(t, json.Unmarshal(raw, &v))
			if over, isObject := v.(map[string]any); isObject && name == "client" {
				maps.Copy(params["client"].(map[string]any), over)
				continue
			}
			params[name] = v
		}
		if list, ok := params["scopes"].([]any); ok {
			scopes := []string{}
			for _, s := range list {
				scopes = append(scopes, s.(string))
			}
			params["scopes"] = scopes
		}
		if raw := in.Connect["device"]; raw != nil {
			var d symbolicDevice
			gatetest.Decode(t, raw, &d)
			w.present(t, c, &d, params)
		}
		for len(watcher) > 0 {
			<-watcher // of the set-up
		}
		c.begin("1", "connect", params)
		f := c.read()
		out := map[string]any{"ok": f.OK}
		if f.OK {
			out["method"] = w.connected()[0].admitted.method
			out["scopes"] = w.connected()[0].admitted.scopes
			auth, _ := f.Payload["auth"].(map[string]any)
			out["deviceTokenIssued"] = auth["deviceToken"] != nil
		} else {
			out["errorCode"] = f.Error.Code
			out["detailCode"] = f.Error.Details["code"]
			out["retryAfterMs"] = f.Error.RetryAfterMs
			out["reason"] = f.Error.Details["reason"]
			out["close"], _ = c.closed()
		}
		select {
		case e := <-watcher:
			out["event"] = map[string]string{identity.PairRequested: "device.pair.requested", identity.PairApproved: "device.pair.resolved"}[e.Kind]
		default:
		}
		return out
	})
}

// present pairs the device as the vector says and adds its proof, with what is wrong about it.
func (w *world) present(t *testing.T, c *client, d *symbolicDevice, params map[string]any) {
	who := newIdentity()
	client := params["client"].(map[string]any)
	platform, _ := client["platform"].(string)
	if d.ClaimedPlatform != "" {
		client["platform"] = d.ClaimedPlatform
	}
	if d.ClaimedFamily != "" {
		client["deviceFamily"] = d.ClaimedFamily
	}
	if d.Paired != nil && *d.Paired {
		roles := d.PairedRoles
		if roles == nil {
			roles = []identity.Role{identity.RoleOperator}
		}
		if d.PairedPlatform != "" {
			platform = d.PairedPlatform
		}
		for _, role := range roles {
			must(t, w.pairings.PairSilently(t.Context(), identity.PairRequest{
				DeviceID: who.id(), Key: who.private[32:], Platform: platform, Family: d.PairedFamily, Role: role, Scopes: d.PairedScopes,
			}))
		}
		if d.Token != "" {
			scopes := d.TokenScopes
			if scopes == nil {
				scopes = d.PairedScopes
			}
			token, _, err := w.pairings.Credential(t.Context(), who.id(), roles[0], scopes)
			must(t, err)
			auth, _ := params["auth"].(map[string]any)
			for name, sent := range auth {
				if sent == d.Token {
					auth[name] = token // the vector's name of the device's token
				}
			}
			if d.TokenRevoked {
				_, err := w.pairings.Revoke(t.Context(), identity.Caller{Device: who.id()}, who.id(), roles[0])
				must(t, err)
			}
		}
	}
	now := time.Now().Add(time.Duration(d.SignedAtOffsetMs) * time.Millisecond)
	nonce := c.nonce
	if d.Nonce != nil {
		nonce = *d.Nonce
	}
	who.sign(params, nonce, now)
	proof := params["device"].(map[string]any)
	for name, wrong := range map[string]*string{"id": d.ID, "signature": d.Signature, "publicKey": d.PublicKey} {
		if wrong != nil {
			proof[name] = *wrong
		}
	}
	if d.Valid != nil && !*d.Valid {
		proof["signature"] = base64.RawURLEncoding.EncodeToString(make([]byte, ed25519.SignatureSize))
	}
	if d.SignedAt != nil {
		proof["signedAt"] = *d.SignedAt
	}
}
