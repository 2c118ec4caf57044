package attacks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/toolward/toolward/plugin"
)

// judgePlugins: a plug-in around a call that policy lets through fails in some way.
func judgePlugins(t *testing.T, c *attack, what fields) (outcome, error) {
	if err := what.only("hooks-runner", "beforeToolCall", "afterToolCall"); err != nil {
		return outcome{}, err
	}
	registry := plugin.NewRegistry()
	own, err := registry.Plugin("guard")
	must(t, err)
	end := make(chan struct{}) // of what hangs
	t.Cleanup(func() { close(end) })
	if what.has("beforeToolCall") {
		answer, err := badPlugin(what["beforeToolCall"], end)
		if err != nil {
			return outcome{}, err
		}
		must(t, own.OnBeforeToolCall(func(context.Context, plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
			return answer()
		}))
	}
	if what.has("afterToolCall") {
		answer, err := badPlugin(what["afterToolCall"], end)
		if err != nil {
			return outcome{}, err
		}
		must(t, own.OnAfterToolCall(func(context.Context, plugin.AfterToolCallEvent) error {
			_, err := answer()
			return err
		}))
	}
	runner := plugin.New(plugin.Options{Registry: registry})
	t.Cleanup(runner.Close)
	w := newWorld(t, func(w *world) { w.hooks = runner })
	caller, _ := w.main("s1")
	a := w.admit(w.newCall(caller, "read", map[string]any{"path": "README.md"}))
	o := w.outcome(a)
	if a.answer != allowed {
		return o, nil
	}
	result, err := a.pass.Run(context.Background())
	if err != nil || result.IsError || !strings.Contains(fmt.Sprint(result.Content), "readme") {
		return outcome{answer: denied, why: fmt.Sprintf("admitted, but it failed: %v %v", result.Content, err), took: o.took}, nil
	}
	if c.Want == string(contained) && !what.has("beforeToolCall") {
		o.answer = contained // what hears of a call afterwards cannot take its result away
	}
	return o, nil
}

// badPlugin is a plug-in that does what the corpus says of it, in words or as its answer.
func badPlugin(what any, end <-chan struct{}) (func() (plugin.BeforeToolCallResult, error), error) {
	if said, ok := what.(map[string]any); ok {
		return answeringPlugin(said)
	}
	words := fmt.Sprint(what)
	has := func(any ...string) bool {
		for _, word := range any {
			if strings.Contains(words, word) {
				return true
			}
		}
		return false
	}
	switch {
	case has("panic", "crash"):
		return func() (plugin.BeforeToolCallResult, error) { panic(words) }, nil
	case has("throw", "reject", "error"):
		return func() (plugin.BeforeToolCallResult, error) { return plugin.BeforeToolCallResult{}, errors.New(words) }, nil
	case has("never", "hang", "timeout", "time-out", "slow"):
		return func() (plugin.BeforeToolCallResult, error) {
			<-end
			return plugin.BeforeToolCallResult{}, nil
		}, nil
	case has("garbage", "malformed", "invalid"):
		return func() (plugin.BeforeToolCallResult, error) {
			return plugin.BeforeToolCallResult{Params: plugin.Change(map[string]any{"path": math.NaN()})}, nil
		}, nil
	}
	return nil, unsupported{"a plug-in that " + words}
}

// answeringPlugin gives an answer as it stands in the corpus.
func answeringPlugin(said fields) (func() (plugin.BeforeToolCallResult, error), error) {
	if err := said.only("the answer of a plug-in", "block", "blockReason", "requireApproval", "params"); err != nil {
		return nil, err
	}
	result := plugin.BeforeToolCallResult{
		Block: said.flag("block"), BlockReason: said.text("blockReason"), RequireApproval: said.flag("requireApproval"),
		Params: plugin.Change(said.object("params")),
	}
	return func() (plugin.BeforeToolCallResult, error) { return result, nil }, nil
}
