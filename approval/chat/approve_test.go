package chat

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestApproveCommandVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "approveCommand", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Text string }
		gatetest.Decode(t, input, &in)
		switch id, d, err := ParseApprove(in.Text); {
		case errors.Is(err, ErrNotApprove):
			return map[string]any{"ignored": true}
		case err != nil:
			return map[string]any{"error": "usage"}
		default:
			return map[string]any{"id": id, "decision": d.String()}
		}
	})
}

func TestParseApprove(t *testing.T) {
	for text, want := range map[string]struct {
		id  string
		d   toolward.Decision
		err error
	}{
		"/approve allow 1234":             {"1234", toolward.AllowOnce, nil},
		"  /APPROVE\n1234\tDENY ":         {"1234", toolward.DenyCall, nil},
		"/approve 1234 once, please":      {"", 0, ErrApproveUsage},
		"/approve 1234 once please":       {"1234", toolward.AllowOnce, nil},
		"/approve 1234 allow deny":        {"", 0, ErrApproveUsage},
		"/approve always 1234 once":       {"", 0, ErrApproveUsage},
		"/approve 12*4 allow":             {"", 0, ErrApproveUsage},
		"/approve":                        {"", 0, ErrApproveUsage},
		"/approve@bot 1234 allow":         {"", 0, ErrNotApprove},
		"please /approve 1234 allow":      {"", 0, ErrNotApprove},
		"":                                {"", 0, ErrNotApprove},
		"/approve 1234 \u0430llow":        {"", 0, ErrApproveUsage}, // a Cyrillic a
		"/approve\u00a01234\u00a0allow":   {"1234", toolward.AllowOnce, nil},
		"/approve 1234 allow\u200b":       {"", 0, ErrApproveUsage},
		"/approve 1234\u202e allow-once":  {"", 0, ErrApproveUsage},
		"/approve approve-1_2:3 BLOCK":    {"approve-1_2:3", toolward.DenyCall, nil},
		"/approvex 1234 allow":            {"", 0, ErrNotApprove},
		"/approve 1234 allow 1234 always": {"", 0, ErrApproveUsage},
	} {
		id, d, err := ParseApprove(text)
		if id != want.id || d != want.d || !errors.Is(err, want.err) {
			t.Errorf("%q: %q %v %v", text, id, d, err)
		}
	}
}
