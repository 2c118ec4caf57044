package policy

import (
	"encoding/json"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/modes"
)

// runsCommand reports whether the row stands for running a command, which modes.Judge judges.
func (r *row) runsCommand() bool {
	return r.Grant == byExec || r.Class == toolward.Blocked && (r.tool == "exec" || r.name == "nodes: run elevated")
}

// anyNode stands for whatever node a command runs on.
const anyNode toolward.Host = "node"

// host is where the command of a call runs. What a node runs is not in the sandbox that the call came from.
func (r *row) host(request *toolward.Request) toolward.Host {
	if r.tool == "nodes" {
		return anyNode
	}
	return request.Host()
}

// commandFindings are those of analysis. That a command was not understood is one: it is only noted in a sandbox
// while that is the guard: see [modes.Tension].
func commandFindings(f []toolward.Finding, a *toolward.CommandAnalysis, host toolward.Host, level toolward.Level) []toolward.Finding {
	if a == nil || a.Understood {
		return f
	}
	effect := toolward.EffectAsk
	if host == toolward.HostSandbox && modes.Tension(host, level, a) == toolward.Normal {
		effect = toolward.EffectNote
	}
	return append(f, toolward.Finding{Code: findCommandParse, Effect: effect, Detail: "the command is not understood"})
}

// weighCommand replaces the class's verdict for a command by that of the settings for commands. An operator's override
// can only make it stricter, and so can a finding. analysis is nil if nobody looked at the command.
func (a *agent) weighCommand(analysis *toolward.CommandAnalysis, host toolward.Host, level toolward.Level, c *classified, w weighed, worst toolward.Effect) weighed {
	if c.named && w.verdict == toolward.Deny {
		return w
	}
	verdict, analyzed := modes.Judge(a.modes, host, level, analysis), analysis != nil
	if !analyzed {
		analysis = &toolward.CommandAnalysis{}
	}
	inForce := a.modes.At(host, modes.Tension(host, level, analysis)).For(analysis)
	if c.row.Class == toolward.Blocked {
		// Enabled elevated commands ask each time; settings that refuse all commands refuse these too.
		if inForce.Security == modes.SecurityDeny || analysis.Forbidden != "" {
			w = weighed{code: toolward.CodeBlocked}
		}
		return w
	}
	if !analyzed {
		c.Grant = exact
		c.explain(toolward.Reason{Layer: "exec", Text: "nobody analysed this command: it asks, unless exactly this one was granted"})
	}
	if c.named {
		verdict = toolward.Stricter(verdict, w.verdict)
	}
	if worst == toolward.EffectAsk {
		verdict = toolward.Stricter(verdict, toolward.Ask)
	}
	switch verdict {
	case toolward.Allow:
		return weighed{verdict: toolward.Allow, listed: analysis.Covered}
	case toolward.Deny:
		c.explain(refusedCommand(analysis, inForce))
		return weighed{code: toolward.CodeBlocked}
	}
	// What a person must look at each time is not covered by what somebody said earlier.
	asks := weigh(approvalOf(c.Classification), false, level, worst)
	ok := asks.grantOK && len(analysis.Findings) == 0 && inForce.Ask != modes.AskAlways
	return weighed{
		verdict: toolward.Ask, grantOK: ok, allowAlways: ok && (!analyzed || len(analysis.Always) > 0 && inForce.Security == modes.SecurityAllowlist),
		unanswered: level == toolward.Normal && analysis.Unanswered && analysis.Understood && analysis.Covered &&
			len(analysis.Findings) == 0 && worst == toolward.EffectNote && !c.named,
	}
}

func refusedCommand(a *toolward.CommandAnalysis, inForce modes.Modes) toolward.Reason {
	if a.Forbidden != "" {
		return toolward.Reason{Layer: "exec", Rule: "tools.exec", Matched: "forbidden", Text: a.Forbidden}
	}
	return toolward.Reason{Layer: "exec", Rule: "tools.exec", Matched: string(inForce.Security), Text: "the settings for commands refuse it without asking"}
}

// approvalOf is the classification as one that people decide.
func approvalOf(c toolward.Classification) toolward.Classification {
	c.Class, c.From = toolward.NeedsApproval, toolward.Normal
	return c
}

// touchesGate reports whether a call of the gateway tool would change the gate itself. Such a change stays blocked
// although config.patch is enabled: a model must not loosen what guards it, not even by asking.
func touchesGate(sub *subject) bool {
	switch sub.action {
	case "updaterun":
		return false
	case "configpatch":
	default:
		return true // config.apply replaces the whole file
	}
	var patch any = sub.params.Value("patch")
	if text, ok := sub.params.String("raw"); ok {
		if patch != nil || json.Unmarshal([]byte(text), &patch) != nil {
			return true // two patches, or one that only a laxer reader understands
		}
	}
	object, ok := patch.(map[string]any)
	return !ok || namesGate(object)
}

// namesGate looks for guarded sections at any depth and in any case: agents have such sections of their own.
func namesGate(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			switch strings.ToLower(name) {
			case "teg", "tools", "approvals", "plugins", "auth":
				return true
			}
			if strings.ContainsAny(name, "./") || namesGate(below) {
				return true
			}
		}
	case []any:
		for _, below := range v {
			if namesGate(below) {
				return true
			}
		}
	}
	return false
}
