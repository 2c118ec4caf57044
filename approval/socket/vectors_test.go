package socket

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward/internal/gatetest"
)

// TestSocketVectors runs the vectors of what a line gets. A wanted response names some of its fields.
func TestSocketVectors(t *testing.T) {
	gatetest.Play(t, "exec.json", "socket", gatetest.Vectors(t, "exec.json", "socket")["socket"], func(t *testing.T, c gatetest.Case) {
		var want any
		gatetest.Decode(t, c.Want, &want)
		got := lineOutcome(t, c.Input)
		if diff := cmp.Diff(want, asserted(want, got)); diff != "" {
			t.Errorf("input %s\n(-want +got)\n%s", c.Input, diff)
		}
	})
}

func lineOutcome(t *testing.T, input json.RawMessage) any {
	var in struct {
		Token      string
		NowMs      int64
		Line       string
		LineBytes  int
		SeenNonces []string
		PeerUID    int `json:"peerUid"`
		ServerUID  int `json:"serverUid"`
	}
	gatetest.Decode(t, input, &in)
	now := time.UnixMilli(in.NowMs)
	g := newGuard(in.Token)
	for _, n := range in.SeenNonces {
		g.first(n, now)
	}
	if in.LineBytes > 0 {
		in.Line = strings.Repeat("x", in.LineBytes)
	}
	out := map[string]any{}
	line, err := readLine(newReader(in.Line + "\n"))
	if err != nil {
		return map[string]any{"closed": true}
	}
	v := g.examine(line, in.PeerUID == in.ServerUID, now)
	switch {
	case v.closed:
		out["closed"] = true
	case v.answer != nil:
		out["response"] = v.answer
	case v.exec != nil:
		out["accepted"], out["id"] = true, v.frame.id
	default:
		out["prompt"], out["id"] = true, v.frame.id
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	gatetest.Decode(t, raw, &plain)
	return plain
}

// asserted keeps of got what want speaks of.
func asserted(want, got any) any {
	w, ok := want.(map[string]any)
	g, same := got.(map[string]any)
	if !ok || !same {
		return got
	}
	out := map[string]any{}
	for key, value := range g {
		if about, named := w[key]; named {
			out[key] = asserted(about, value)
		}
	}
	return out
}
