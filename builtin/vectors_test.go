package builtin

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/schema"
)

// TestCommandVectors runs the vectors of running, showing and following commands. As their readme says, a key that
// the wanted value does not have is not asserted.
func TestCommandVectors(t *testing.T) {
	answers := map[string]func(t *testing.T, input json.RawMessage) map[string]any{
		"execParams": execParamsVector, "pollWait": pollWaitVector, "pollBackoff": pollBackoffVector,
		"logSlice": logSliceVector, "outputCap": outputCapVector,
	}
	for kind, answer := range answers {
		gatetest.RunAsserted(t, "exec.json", kind, answer)
	}
}

func execParamsVector(t *testing.T, input json.RawMessage) map[string]any {
	var in struct {
		Params          json.RawMessage
		AllowBackground *bool
		Host            toolward.Host
		Config          Config
	}
	gatetest.Decode(t, input, &in)
	compiled, err := schema.Compile([]byte(execSchema), schema.Options{})
	if err != nil {
		t.Fatal(err)
	}
	value, err := compiled.Decode(in.Params)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	params := toolward.NewParams(value.Canonical, value.Object)
	if err := checkCommand(params.Text("command")); err != nil {
		return map[string]any{"error": err.Error()}
	}
	box := Toolbox{cfg: in.Config.Defaults()}
	timing := box.timing(params, in.AllowBackground == nil || *in.AllowBackground)
	out := map[string]any{"yieldMs": nil, "timeoutSec": nil, "pty": wantsTerminal(params, in.Host)}
	if timing.yield >= 0 {
		out["yieldMs"] = timing.yield.Milliseconds()
	}
	if timing.timeout > 0 {
		out["timeoutSec"] = timing.timeout.Seconds()
	}
	if timing.warning != "" {
		out["warning"] = timing.warning
	}
	return out
}

func pollWaitVector(t *testing.T, input json.RawMessage) map[string]any {
	var in struct{ Timeout any }
	gatetest.Decode(t, input, &in)
	if f, ok := in.Timeout.(float64); ok {
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		in.Timeout = json.Number(raw)
	}
	return map[string]any{"waitMs": pollWait(in.Timeout).Milliseconds()}
}

func pollBackoffVector(t *testing.T, input json.RawMessage) map[string]any {
	var in struct{ Polls []bool }
	gatetest.Decode(t, input, &in)
	pauses, empty := []int64{}, 0
	for _, newOutput := range in.Polls {
		pauses = append(pauses, pollPause(&empty, newOutput).Milliseconds())
	}
	return map[string]any{"retryInMs": pauses}
}

func logSliceVector(t *testing.T, input json.RawMessage) map[string]any {
	var in struct {
		Text          string
		Offset, Limit *int
	}
	gatetest.Decode(t, input, &in)
	slice, lines := logSlice(in.Text, in.Offset, in.Limit)
	return map[string]any{"slice": slice, "totalLines": lines}
}

func outputCapVector(t *testing.T, input json.RawMessage) map[string]any {
	var in struct {
		MaxChars int
		Chunks   []string
	}
	gatetest.Decode(t, input, &in)
	out := newTranscript(0, in.MaxChars, math.MaxInt32)
	for _, chunk := range in.Chunks {
		out.Write([]byte(chunk))
	}
	text, truncated, total := out.aggregated()
	return map[string]any{"aggregated": text, "truncated": truncated, "total": total}
}
