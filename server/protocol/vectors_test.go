package protocol

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/server/door"
)

// textSpec is a long text as vectors write it.
func textSpec(t *testing.T, raw json.RawMessage) string {
	var pieces [][2]json.RawMessage
	must(t, json.Unmarshal(raw, &pieces))
	var b strings.Builder
	for _, p := range pieces {
		var text string
		var n int
		must(t, json.Unmarshal(p[0], &text))
		must(t, json.Unmarshal(p[1], &n))
		b.WriteString(strings.Repeat(text, n))
	}
	return b.String()
}

// rawFrame is a frame of a vector: an object, a text as it is, or a long text.
func rawFrame(t *testing.T, raw json.RawMessage) string {
	if text, isText := textOf(raw); isText {
		return text
	}
	var spec struct{ TextSpec json.RawMessage }
	if json.Unmarshal(raw, &spec) == nil && spec.TextSpec != nil {
		return textSpec(t, spec.TextSpec)
	}
	return string(raw)
}

func TestFrameVectors(t *testing.T) {
	w := newWorld(t, byToken)
	runVectors(t, "frame", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			State string
			Raw   json.RawMessage
		}
		gatetest.Decode(t, input, &in)
		w.t = t
		raw := rawFrame(t, in.Raw)
		if in.State == "post" {
			c := w.connect(nil, identity.ScopeAdmin)
			c.send(raw)
			f := c.read()
			out := map[string]any{"ok": f.OK, "responseId": f.ID, "open": c.request("health", nil).OK}
			if f.Error != nil {
				out["errorCode"], out["message"] = f.Error.Code, f.Error.Message
			}
			return out
		}
		c := w.dial(visit{})
		// A connection in memory holds no bytes: the answer to a long frame must be read while it is written.
		go c.ws.Write(t.Context(), websocket.MessageText, []byte(withAuth(t, raw)))
		out := map[string]any{"accepted": false}
		f, err := c.next()
		switch {
		case err != nil:
			out["noResponse"] = true
		case f.OK:
			return map[string]any{"accepted": true, "protocol": f.Payload["protocol"]}
		default:
			out["responseId"], out["errorCode"], out["message"] = f.ID, f.Error.Code, f.Error.Message
		}
		if err == nil {
			out["close"], _ = c.closed()
		} else {
			out["close"] = closeCode(err)
		}
		return out
	})
}

// withAuth gives a connect frame of a vector, in which the credential is valid, the credential.
func withAuth(t *testing.T, raw string) string {
	var f map[string]any
	if json.Unmarshal([]byte(raw), &f) != nil || f["method"] != "connect" {
		return raw
	}
	params, ok := f["params"].(map[string]any)
	if !ok || params["auth"] != nil {
		return raw
	}
	params["auth"] = map[string]any{"token": secret}
	out, err := json.Marshal(f)
	must(t, err)
	return string(out)
}

func TestScopeVectors(t *testing.T) {
	runVectors(t, "scope", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Method, Role string
			Scopes       []string
		}
		gatetest.Decode(t, input, &in)
		scope, wrongRole := missingScope(in.Method, identity.Role(in.Role), in.Scopes)
		switch {
		case wrongRole:
			return map[string]any{"allowed": false, "error": "unauthorized role: " + in.Role}
		case scope != "":
			return map[string]any{"allowed": false, "missingScope": scope}
		}
		return map[string]any{"allowed": true}
	})
}

func TestOriginVectors(t *testing.T) {
	runVectors(t, "origin", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			RequestHost, Origin           string
			AllowedOrigins                []string
			AllowHostHeaderOriginFallback bool
		}
		gatetest.Decode(t, input, &in)
		return map[string]any{"ok": door.OriginRules{Allowed: in.AllowedOrigins, HostFallback: in.AllowHostHeaderOriginFallback}.Accepts(in.Origin, in.RequestHost)}
	})
}

func TestRateLimitVectors(t *testing.T) {
	runVectors(t, "rate_limit", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Config struct {
				MaxAttempts         int
				WindowMs, LockoutMs int64
				ExemptLoopback      *bool
			}
			Ops []struct {
				At    int64
				IP    string
				Class string
				Scope string
				Fail  int
				Check bool
				Reset bool
			}
		}
		gatetest.Decode(t, input, &in)
		l := door.NewLimiter(door.LimitSettings{
			MaxAttempts: in.Config.MaxAttempts, Window: time.Duration(in.Config.WindowMs) * time.Millisecond,
			Lockout:        time.Duration(in.Config.LockoutMs) * time.Millisecond,
			CountsLoopback: in.Config.ExemptLoopback != nil && !*in.Config.ExemptLoopback,
		})
		checks := []any{}
		for _, op := range in.Ops {
			ip, err := netip.ParseAddr(op.IP)
			must(t, err)
			now := time.UnixMilli(op.At)
			class := op.Class + op.Scope
			for range op.Fail {
				l.Fail(class, ip, now)
			}
			if op.Reset {
				l.Reset(class, ip)
			}
			if op.Check {
				s := l.Check(class, ip, now)
				checks = append(checks, map[string]any{"allowed": s.Allowed, "remaining": s.Remaining, "retryAfterMs": s.RetryAfter.Milliseconds()})
			}
		}
		return map[string]any{"checks": checks}
	})
}

func TestDeviceSignatureVectors(t *testing.T) {
	runVectors(t, "device_signature", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			DeviceID, PublicKey, ClientID, ClientMode, Role, Token, Nonce, Platform, DeviceFamily, Signature string
			Scopes                                                                                           []string
			SignedAtMs                                                                                       int64
		}
		gatetest.Decode(t, input, &in)
		p := identity.Proof{
			DeviceID: in.DeviceID, PublicKey: in.PublicKey, Signature: in.Signature, SignedAtMs: in.SignedAtMs, Nonce: in.Nonce,
			ClientID: in.ClientID, ClientMode: in.ClientMode, Role: identity.Role(in.Role), Scopes: in.Scopes, Token: in.Token,
			Platform: in.Platform, Family: in.DeviceFamily,
		}
		key, err := p.Key()
		if err != nil || identity.DeviceID(key) != in.DeviceID {
			return map[string]any{"valid": false}
		}
		version, err := p.Signed(key)
		if err != nil {
			return map[string]any{"valid": false, "payload": p.Payload("v3")}
		}
		return map[string]any{"valid": true, "version": version, "payload": p.Payload(version)}
	})
}

func TestBroadcastVectors(t *testing.T) {
	runVectors(t, "broadcast", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Event         string
			DropIfSlow    bool
			BufferedBytes int64
			Role          string
			Scopes        []string
			Targeted      bool
		}
		gatetest.Decode(t, input, &in)
		d := addressed{in.Event, in.DropIfSlow, in.Targeted}.deliver(in.BufferedBytes, identity.Role(in.Role), in.Scopes)
		if d == hangUp {
			// The connection really ends with this code and these words.
			ended := make(chan closing, 1)
			q := newQueue(nil, func(why closing) { ended <- why })
			q.offer(func(int64) delivery { return d }, newEvent(nil))
			why := <-ended
			return map[string]any{"action": "close", "closeCode": why.code, "reason": why.reason}
		}
		return map[string]any{"action": map[delivery]string{send: "send", sendAlone: "send", drop: "drop", skip: "skip"}[d], "consumesSeq": d.usesNumber()}
	})
}

// abortOf is who stops a run: true, or a word for it.
type abortOf string

func (a *abortOf) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" {
		return nil
	}
	return json.Unmarshal(raw, (*string)(a))
}

func TestChatThrottleVectors(t *testing.T) {
	runVectors(t, "chat_throttle", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Events []struct {
				At                                     int64
				Stream, Text, Phase, Error, StopReason string
				Abort                                  *abortOf
			}
		}
		gatetest.Decode(t, input, &in)
		var run ChatRun
		emitted := []any{}
		for _, e := range in.Events {
			var event ChatEvent
			var ok bool
			now := time.UnixMilli(e.At)
			switch {
			case e.Abort != nil:
				event, ok = run.Abort(string(*e.Abort))
			case e.Stream == "assistant":
				event, ok = run.Text(e.Text, now)
			case e.Stream == "lifecycle" && e.Phase == "error":
				event, ok = run.End(e.Error, e.StopReason)
			case e.Stream == "lifecycle" && e.Phase == "end":
				event, ok = run.End("", e.StopReason)
			case e.Stream != "lifecycle" || e.Phase != "start":
				t.Fatalf("nobody plays %+v", e)
			}
			if !ok {
				continue
			}
			out := map[string]any{"at": e.At, "state": event.State}
			if event.Text != "" {
				out["text"] = event.Text
			}
			if event.Error != "" {
				out["errorMessage"] = event.Error
			}
			if event.StopReason != "" {
				out["stopReason"] = event.StopReason
			}
			emitted = append(emitted, out)
		}
		return map[string]any{"emitted": emitted}
	})
}

func mustAddr(t *testing.T, text string) netip.Addr {
	t.Helper()
	ip, err := netip.ParseAddr(text)
	must(t, err)
	return ip
}
