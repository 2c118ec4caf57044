package plugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// maxReason is the length in bytes of a plug-in's words that reach the model.
const maxReason = 1024

const defaultBlock = "Tool call blocked by plugin hook"

// Effects of a handler, for the record.
const (
	effectPass    = "pass"
	effectRewrite = "rewrite"
	effectAsk     = "ask"
	effectBlock   = "block"
	effectError   = "error"
	effectTimeout = "timeout"
	effectIgnored = "ignored" // it changed parameters that another handler had frozen
)

// Before asks the handlers in order about a call that was judged. A later handler sees what earlier ones made of the
// parameters: otherwise a guard would judge what is not run.
func (r *Runner) Before(ctx context.Context, request *toolward.Request) toolward.HookAnswer {
	s := r.acquire()
	defer s.drop()
	if len(s.before) == 0 {
		return toolward.HookAnswer{}
	}
	m := merger{runner: r, request: request, call: contextOf(request), params: request.Params}
	for i := range s.before {
		h := &s.before[i]
		if h.tools.has(m.call.ToolName) && !m.ask(ctx, h) {
			break
		}
	}
	if m.changed {
		m.answer.Params = m.params.Canonical()
	}
	return m.answer
}

// merger puts the answers of the handlers together.
type merger struct {
	runner  *Runner
	request *toolward.Request
	call    CallContext
	params  toolward.Params // as they are by now
	changed bool
	answer  toolward.HookAnswer
}

// ask calls one handler and takes up its answer. It returns false when the call is settled: a refusal is final, so
// that no later handler can lift it.
func (m *merger) ask(ctx context.Context, h *handler[BeforeToolCallFunc]) bool {
	run := toolward.HookRun{Plugin: h.plugin, Hook: string(BeforeToolCall), Effect: effectPass}
	start := time.Now()
	result, err := guarded(ctx, &h.registration, func(ctx context.Context) (BeforeToolCallResult, error) {
		return h.call(ctx, BeforeToolCallEvent{m.call, m.params})
	})
	run.Ms = time.Since(start).Milliseconds()
	if err == nil && !result.Block {
		err = m.change(result.Params, &run)
	}
	defer func() { m.answer.Runs = append(m.answer.Runs, run) }()
	switch {
	case err != nil:
		open := m.failed(ctx, h, err, &run)
		// That it wants a person was said clearly, even where the rest is not understood.
		m.answer.Ask = m.answer.Ask || open && result.RequireApproval
		return open
	case result.Block:
		run.Effect, run.Detail = effectBlock, shortened(result.BlockReason)
		m.answer.Block, m.answer.Reason = true, cmp.Or(run.Detail, defaultBlock)
		return false
	case result.RequireApproval && !m.answer.Ask:
		run.Effect = effectAsk
		m.answer.Ask = true
	}
	return true
}

// change merges parameters over the current ones, name by name.
func (m *merger) change(c Changes, run *toolward.HookRun) error {
	switch {
	case c.err != nil:
		return fmt.Errorf("its parameters cannot be written as JSON: %w", c.err)
	case c.none():
		return nil
	case m.answer.Ask:
		// A person is to decide about the parameters as they were when the question was raised.
		run.Effect, run.Detail = effectIgnored, "parameters are frozen: another plug-in asked for a person"
		m.runner.log.Warn("a plug-in changed parameters after another had asked for a person; they stay", "plugin", run.Plugin, "tool", m.call.ToolName)
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(c.text))
	decoder.UseNumber()
	object := m.params.Object()
	if err := decoder.Decode(&object); err != nil {
		return fmt.Errorf("its parameters are not an object: %w", err)
	}
	canonical, err := schema.Canonical(object)
	if err != nil {
		return fmt.Errorf("its parameters cannot be written as JSON: %w", err)
	}
	before := m.params
	if bytes.Equal(canonical, before.AppendCanonical(nil)) {
		return nil
	}
	m.params, m.changed = toolward.NewParams(canonical, object), true
	run.Effect, run.Before, run.After = effectRewrite, m.digest(before), m.digest(m.params)
	return nil
}

func (m *merger) digest(p toolward.Params) string {
	return p.Digest(m.call.ToolName, m.call.AgentID, m.call.SessionKey)
}

// failed refuses the call, unless the operator lets this plug-in fail open. Who was withdrawn is refused in any case.
func (m *merger) failed(ctx context.Context, h *handler[BeforeToolCallFunc], err error, run *toolward.HookRun) bool {
	code := toolward.CodeHookError
	run.Effect, run.Detail = effectError, shortened(err.Error())
	run.Before, run.After = "", ""
	if errors.Is(err, errTimeout) {
		code, run.Effect = toolward.CodeHookTimeout, effectTimeout
	}
	open := h.onError == Open && ctx.Err() == nil
	m.runner.failed(&h.registration, err, "tool", m.call.ToolName, "refused", !open)
	if open {
		return true
	}
	m.answer.Code = code
	return false
}

// shortened cuts a plug-in's words and keeps them text.
func shortened(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxReason)], "\uFFFD")
}
