// Package plugin runs plug-ins around a tool call. They can refuse, rewrite and ask for a person; they can never grant.
//
// A plug-in is compiled in (see [Registry]), a program that answers lines of JSON, or a web server (see [Config]).
// [Runner] is the gateway's toolward.Hooks: it calls the handlers in order, merges what they say, and refuses a call
// whose guard fails, hangs, panics or answers what nobody understands.
//
//	r := plugin.NewRegistry()
//	p, err := r.Plugin("spelling")
//	err = p.OnBeforeToolCall(func(ctx context.Context, e plugin.BeforeToolCallEvent) (plugin.BeforeToolCallResult, error) {
//		return plugin.BeforeToolCallResult{Params: plugin.Change(map[string]any{"timeout": 5})}, nil
//	}, plugin.Tools("exec"), plugin.Timeout(time.Second))
//	runner := plugin.New(plugin.Options{Registry: r})
//
// Nothing that a handler gets or gives is shared with it: a goroutine that it leaves behind can write to what it
// holds, and changes nothing that is decided, shown or run.
package plugin
