package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/plugin"
	"github.com/toolward/toolward/schema"
)

// vector is the input of a case of kind "hook".
type vector struct {
	Hook  plugin.Name
	Event struct {
		ToolName string
		Params   json.RawMessage
		Message  map[string]string
		Result   json.RawMessage
		Error    string
	}
	Handlers []vectorHandler
}

type vectorHandler struct {
	Plugin        string
	Priority      int
	Returns       json.RawMessage
	ReturnsAppend *string
	Throws        *string
	Async         bool
	DelayMs       int
	TimeoutMs     int
}

// The cases of the hooks around a call are played; the others belong to hooks that come with the agent runtime.
func TestHookVectors(t *testing.T) {
	gatetest.Play(t, "runtime.json", "hook", gatetest.Vectors(t, "runtime.json", "hook")["hook"], func(t *testing.T, c gatetest.Case) {
		var about struct {
			Hook            plugin.Name
			Event, Handlers json.RawMessage
		}
		gatetest.Decode(t, c.Input, &about)
		if !slices.Contains([]plugin.Name{plugin.BeforeToolCall, plugin.AfterToolCall, plugin.ToolResultPersist}, about.Hook) {
			gatetest.Waits(t, "the hook "+string(about.Hook)+" comes with the agent runtime")
		}
		var in vector
		gatetest.Decode(t, c.Input, &in)
		synctest.Test(t, func(t *testing.T) { checkVector(t, in, c.Want) })
	})
}

// checkVector compares what the case lists; an answer may say more.
func checkVector(t *testing.T, in vector, want json.RawMessage) {
	var wanted map[string]any
	gatetest.Decode(t, want, &wanted)
	raw, err := json.Marshal(newStageOf(t, in).play(t, in))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	gatetest.Decode(t, raw, &got)
	for name, value := range wanted {
		if listed, ok := value.(map[string]any); ok && name == "outcome" {
			outcome, _ := got[name].(map[string]any)
			for key, v := range listed {
				if diff := cmp.Diff(v, outcome[key]); diff != "" {
					t.Errorf("outcome.%s (-want +got)\n%s", key, diff)
				}
			}
			continue
		}
		if diff := cmp.Diff(value, got[name]); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// vectorStage is a runner whose handlers do as the case says and note what they were given.
type vectorStage struct {
	t       *testing.T
	runner  *plugin.Runner
	slowest time.Duration // of all handlers

	mu       sync.Mutex
	called   []string
	seen     []any
	tool     string
	errors   []string
	warnings []string
}

func newStageOf(t *testing.T, in vector) *vectorStage {
	s := &vectorStage{t: t}
	registry := plugin.NewRegistry()
	for _, h := range in.Handlers {
		s.slowest = max(s.slowest, time.Duration(h.DelayMs)*time.Millisecond)
		own, err := registry.Plugin(h.Plugin)
		if err != nil {
			t.Fatal(err)
		}
		options := []plugin.Option{plugin.Priority(h.Priority)}
		if h.TimeoutMs > 0 {
			options = append(options, plugin.Timeout(time.Duration(h.TimeoutMs)*time.Millisecond))
		}
		switch in.Hook {
		case plugin.BeforeToolCall:
			err = own.OnBeforeToolCall(s.before(h), options...)
		case plugin.AfterToolCall:
			err = own.OnAfterToolCall(func(ctx context.Context, e plugin.AfterToolCallEvent) error {
				_, err := s.before(h)(ctx, plugin.BeforeToolCallEvent{Call: e.Call, Params: e.Params})
				if e.Result != nil {
					e.Result.Content[0].Text = "tampered"
				}
				return err
			}, options...)
		case plugin.ToolResultPersist:
			err = own.OnToolResultPersist(s.persist(h), options...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.runner = plugin.New(plugin.Options{Registry: registry, Log: slog.New(s)})
	t.Cleanup(s.runner.Close)
	return s
}

func (s *vectorStage) note(h vectorHandler, call plugin.CallContext, params toolward.Params) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = append(s.called, h.Plugin)
	s.seen = append(s.seen, params.Object())
	s.tool = call.ToolName
}

func (s *vectorStage) before(h vectorHandler) plugin.BeforeToolCallFunc {
	return func(_ context.Context, e plugin.BeforeToolCallEvent) (out plugin.BeforeToolCallResult, err error) {
		s.note(h, e.Call, e.Params)
		time.Sleep(time.Duration(h.DelayMs) * time.Millisecond)
		if h.Throws != nil {
			return out, errors.New(*h.Throws)
		}
		var result struct {
			Block           *bool
			BlockReason     string
			RequireApproval any
			Params          any
			Result          any // of hooks that answer nothing
		}
		if len(h.Returns) > 0 {
			if err := json.Unmarshal(h.Returns, &result); err != nil {
				return out, nil // not of the type of an answer: Go has no such value
			}
			gatetest.Decode(s.t, h.Returns, &result) // nor a field that is none
		}
		out.Block, out.BlockReason = result.Block != nil && *result.Block, result.BlockReason
		out.RequireApproval = result.RequireApproval != nil && result.RequireApproval != false
		if object, ok := result.Params.(map[string]any); ok { // the types admit nothing else
			out.Params = plugin.Change(object)
		}
		return out, nil
	}
}

// persist appends to the message. Go's handlers have no asynchronous form; what comes nearest is one that leaves its
// work to a goroutine, which writes to the message that it was given, and answers nothing, late: it is warned of, and
// what it wrote changes nothing.
func (s *vectorStage) persist(h vectorHandler) plugin.ToolResultPersistFunc {
	return func(e plugin.ToolResultEvent) (plugin.Replacement, error) {
		s.note(h, e.Call, toolward.Params{})
		time.Sleep(time.Duration(h.DelayMs) * time.Millisecond)
		switch {
		case h.Throws != nil:
			return plugin.Replacement{}, errors.New(*h.Throws)
		case h.Async:
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(100 * time.Millisecond)
				e.Message.Content[0].Text += "late"
			}()
			<-done
			return plugin.Replacement{}, nil
		case h.ReturnsAppend != nil:
			e.Message.Content[0].Text += *h.ReturnsAppend
			return plugin.Replace(e.Message), nil
		}
		var result struct{ Message *struct{ Role, Text string } }
		if len(h.Returns) > 0 {
			gatetest.Decode(s.t, h.Returns, &result)
		}
		if result.Message != nil {
			return plugin.Replace(toolward.TextResult(result.Message.Text)), nil
		}
		return plugin.Replacement{}, nil
	}
}

// play runs the hook once, as the gateway does.
func (s *vectorStage) play(t *testing.T, in vector) map[string]any {
	request := &toolward.Request{
		Tool: &toolward.Tool{Name: in.Event.ToolName}, Params: paramsOf(t, in.Event.Params),
		Call: toolward.Call{ID: "c1", Session: "agent:main:main", Caller: toolward.Caller{Agent: "main"}},
	}
	answer := map[string]any{"result": nil}
	switch in.Hook {
	case plugin.BeforeToolCall:
		answer["outcome"] = outcomeOf(s.runner.Before(t.Context(), request), request)
	case plugin.AfterToolCall:
		result := toolward.TextResult(string(in.Event.Result))
		unchanged := toolward.TextResult(string(in.Event.Result))
		start := time.Now()
		s.runner.After(t.Context(), request, &toolward.OutcomeRecord{Status: toolward.StatusOK, Error: in.Event.Error}, &result)
		answer["awaited"] = time.Since(start) > 0
		s.end()
		answer["toolResultUnchanged"] = reflect.DeepEqual(result, unchanged)
	case plugin.ToolResultPersist:
		text := in.Event.Message["text"]
		result, err := s.runner.Result(t.Context(), request, toolward.TextResult(text))
		if err != nil {
			answer["outcome"] = map[string]any{"withheld": true}
			break
		}
		if got := result.Content[0].Text; got != text {
			message := map[string]any{"role": in.Event.Message["role"], "text": got}
			answer["result"] = map[string]any{"message": message}
		}
	}
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	answer["called"], answer["seen"], answer["seenToolName"] = s.called, s.seen, s.tool
	answer["errors"], answer["warnings"] = s.errors, s.warnings
	answer["calledSet"] = slices.Sorted(slices.Values(s.called))
	return answer
}

// end waits until every handler has ended, also one that the runner gave up: a sleeper that outlives the bubble of its case would
// panic, and take the results of all other cases with it.
func (s *vectorStage) end() {
	time.Sleep(s.slowest + time.Hour)
	synctest.Wait()
}

func outcomeOf(a toolward.HookAnswer, r *toolward.Request) map[string]any {
	switch {
	case a.Code != "":
		return map[string]any{"blocked": true, "reasonCode": a.Code}
	case a.Block:
		return map[string]any{"blocked": true, "reason": a.Reason, "reasonCode": toolward.CodeHookBlock}
	}
	params := a.Params
	if params == nil {
		params, _ = json.Marshal(r.Params.Object())
	}
	return map[string]any{"blocked": false, "params": params, "requireApproval": a.Ask}
}

// paramsOf reads the parameters of an event; what is not an object is passed on as an empty one.
func paramsOf(t *testing.T, raw json.RawMessage) toolward.Params {
	var object map[string]any
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return toolward.Params{}
	}
	canonical, err := schema.Canonicalize(raw)
	if err != nil {
		t.Fatal(err)
	}
	return toolward.NewParams(canonical, object)
}

// Enabled, Handle, WithAttrs and WithGroup make the stage the log of its runner.
func (s *vectorStage) Enabled(context.Context, slog.Level) bool { return true }

func (s *vectorStage) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key != "plugin":
		case r.Level == slog.LevelWarn:
			s.warnings = append(s.warnings, a.Value.String())
		default:
			s.errors = append(s.errors, a.Value.String())
		}
		return true
	})
	return nil
}
func (s *vectorStage) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *vectorStage) WithGroup(string) slog.Handler      { return s }
