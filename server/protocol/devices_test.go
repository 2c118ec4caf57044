package protocol

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/identity"
)

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

// A device of another machine waits for a person; a person's console lets it in.
func TestPairingOverTheWire(t *testing.T) {
	w := newWorld(t, byToken)
	desk := w.console(newIdentity(), identity.ScopePairing, identity.ScopeRead)
	phone := newIdentity()
	far := visit{ip: "10.0.0.5"}
	c, f := w.tryConnect(far, phone, identity.ScopeRead)
	if f.OK || f.Error.Code != codeNotPaired {
		t.Fatalf("%+v", f)
	}
	if code, reason := c.closed(); code != closePolicy || reason != "pairing required" {
		t.Errorf("closed with %d %q", code, reason)
	}
	asked := desk.event("device.pair.requested")
	if asked.Payload["requestId"] != f.Error.Details["requestId"] || asked.Payload["deviceId"] != phone.id() {
		t.Errorf("%+v", asked)
	}
	if f := desk.request("device.pair.approve", map[string]any{"requestId": asked.Payload["requestId"]}); !f.OK {
		t.Fatalf("%+v", f.Error)
	}
	if _, f = w.tryConnect(far, phone, identity.ScopeRead); !f.OK {
		t.Fatalf("%+v", f.Error)
	}
	// What it wants beyond that is asked anew, and the desk cannot give what it does not hold.
	_, f = w.tryConnect(far, phone, identity.ScopeAdmin)
	if f.OK || f.Error.Details["reason"] != "scope-upgrade" {
		t.Fatalf("%+v", f)
	}
	if f := desk.request("device.pair.approve", map[string]any{"requestId": f.Error.Details["requestId"]}); f.OK {
		t.Error("the desk gave what it does not hold")
	}
	// Its own token will do in place of the gateway's; nobody else is told it.
	c, f = w.tryConnect(far, phone, identity.ScopeRead)
	token := f.Payload["auth"].(map[string]any)["deviceToken"].(string)
	list := mustJSON(t, desk.request("device.pair.list", nil))
	for _, hidden := range []string{token, `"salt"`} {
		if strings.Contains(list, hidden) {
			t.Error("the list of devices tells a secret")
		}
	}
	withToken := func() frame {
		d := w.dial(far)
		params := hello(func(p map[string]any) {
			p["auth"], p["scopes"] = map[string]any{"deviceToken": token}, []string{identity.ScopeRead}
		})
		phone.sign(params, d.nonce, time.Now())
		d.begin("1", "connect", params)
		return d.response("1")
	}
	if f := withToken(); !f.OK {
		t.Fatalf("%+v", f.Error)
	}
	if f := desk.request("device.token.rotate", map[string]any{"deviceId": phone.id(), "role": "operator"}); !f.OK || f.Payload["token"] != nil {
		t.Errorf("rotation by somebody else: %+v", f)
	}
	if f := withToken(); f.OK || f.Error.Details["code"] != detailDeviceToken {
		t.Errorf("a token that was replaced: %+v", f)
	}
	own := c.request("device.token.rotate", map[string]any{"deviceId": phone.id(), "role": "operator"})
	if own.OK {
		t.Error("without the scope a device rotates its token")
	}
	// Removing it ends its connections.
	if f := desk.request("device.pair.remove", map[string]any{"deviceId": phone.id()}); !f.OK {
		t.Fatalf("%+v", f.Error)
	}
	if code, _ := c.closed(); code != closePolicy {
		t.Errorf("closed with %d", code)
	}
}
