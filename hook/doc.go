// Package hook runs plug-ins around a tool call. They can refuse, rewrite and ask for a person; they can never grant.
//
// A plug-in is compiled in (see [Registry]), a program that answers lines of JSON, or a web server (see [Config]).
// [Runner] is the gateway's toolward.Hooks: it calls the handlers in order, merges what they say, and refuses a call
// whose guard fails, hangs, panics or answers what nobody understands.
//
//	r := hook.NewRegistry()
//	p, err := r.Plugin("spelling")
//	err = p.OnBeforeToolCall(func(ctx context.Context, e hook.BeforeToolCallEvent) (hook.BeforeToolCallResult, error) {
//		return hook.BeforeToolCallResult{Params: hook.Change(map[string]any{"timeout": 5})}, nil
//	}, hook.Tools("exec"), hook.Timeout(time.Second))
//	runner := hook.New(hook.Options{Registry: r})
//
// Nothing that a handler gets or gives is shared with it: a goroutine that it leaves behind can write to what it
// holds, and changes nothing that is decided, shown or run.
package hook
