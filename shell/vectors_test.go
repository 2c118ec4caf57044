package shell

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestAnalyzeVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "analyze", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Command string }
		gatetest.Decode(t, input, &in)
		command, err := Analyze(in.Command)
		if err != nil {
			refused, ok := errors.AsType[*NotAnalysable](err)
			if !ok {
				t.Fatal(err)
			}
			return map[string]any{"ok": false, "reason": refused.Reason}
		}
		segments := []map[string]any{}
		for i := range command.Segments {
			s := &command.Segments[i]
			segment := map[string]any{"argv": s.Argv()}
			if s.Op != None && i < len(command.Segments)-1 {
				segment["op"] = s.Op
			}
			if len(s.Redirs) > 0 {
				redirs := []string{}
				for _, r := range s.Redirs {
					redirs = append(redirs, r.String())
				}
				segment["redirs"] = redirs
			}
			if s.Heredoc != nil {
				segment["heredoc"] = true
			}
			if positions := s.Literalized(); len(positions) > 0 {
				segment["literalized"] = positions
			}
			segments = append(segments, segment)
		}
		return map[string]any{"ok": true, "segments": segments}
	})
}

func TestWrapperVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "wrapper", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Argv []string }
		gatetest.Decode(t, input, &in)
		u := Unwrap(in.Argv)
		got := map[string]any{"blocked": u.Blocked != "", "wrappers": append([]string{}, u.Wrappers...)}
		if u.Blocked != "" {
			got["blockedWrapper"] = u.Blocked
		} else {
			got["effectiveArgv"] = in.Argv[u.Program:]
		}
		return got
	})
}
