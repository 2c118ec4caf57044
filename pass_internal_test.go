package toolward

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPassNeverSurvivesAChangedByte changes one thing that a pass is bound to, anywhere, and expects a refusal.
func TestPassNeverSurvivesAChangedByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ran := false
		tool := &Tool{Name: "write", Run: func(context.Context, *Request) (Result, error) {
			ran = true
			return Result{}, nil
		}}
		request := &Request{
			Tool:   tool,
			Params: NewParams([]byte(`{"content":"hello","path":"a.txt"}`), nil),
			Call: Call{
				Session: "agent:main:main", WorkDir: "/ws", Host: HostGateway, Surface: SurfaceMCP,
				Caller: Caller{Agent: "main"},
			},
			Facts: Facts{Targets: []Target{{Real: "/ws/a.txt", Op: OpWrite}}, Bound: []string{"env"}},
		}
		request.Digest = request.Params.Digest("write", "main", "agent:main:main")
		g := &Gateway{policy: fixedPolicy("7"), auditor: deafAuditor{}}
		pass := &Pass{gateway: g, request: request, bound: passBinding(request, request.Digest, "7"), deadline: time.Now().Add(time.Hour)}

		fields := []*string{
			&request.Call.WorkDir, (*string)(&request.Call.Host), (*string)(&request.Call.Session),
			(*string)(&request.Call.Surface), &request.Call.Caller.Agent, &request.Tool.Name,
			&request.Facts.Targets[0].Real, &request.Facts.Bound[0],
		}
		if i := rapid.IntRange(-1, len(fields)-1).Draw(t, "field"); i >= 0 {
			*fields[i] = changed(t, []byte(*fields[i]))
		} else {
			request.Params.canonical = []byte(changed(t, slices.Clone(request.Params.canonical)))
		}
		if _, err := pass.Run(context.Background()); !errors.Is(err, ErrPassChanged) || ran {
			t.Fatalf("error %v, ran %v", err, ran)
		}
	})
}

// changed flips one ASCII bit of one byte, which keeps the text valid UTF-8.
func changed(t *rapid.T, b []byte) string {
	i := rapid.IntRange(0, len(b)-1).Draw(t, "byte")
	b[i] ^= 1 << rapid.IntRange(0, 6).Draw(t, "bit")
	return string(b)
}

type fixedPolicy string

func (p fixedPolicy) Snapshot() Snapshot                  { return fixedSnapshot{revision: string(p)} }
func (s fixedSnapshot) Revision() string                  { return s.revision }
func (fixedSnapshot) Find(Caller, string) (*Tool, Reason) { return nil, Reason{} }

type fixedSnapshot struct {
	Snapshot
	revision string
}

type deafAuditor struct{ Auditor }

func (deafAuditor) Conclude(context.Context, RecordID, *OutcomeRecord) error { return nil }
