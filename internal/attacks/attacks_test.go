package attacks

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
)

// judge answers one case, or fails with unsupported.
type judge func(*testing.T, *attack) (outcome, error)

// judges by class; "" after the surface stands for all its other classes.
var judges = map[string]judge{
	"mcp.name":          judgeMCP,
	"mcp.schema":        judgeMCP,
	"mcp.args":          judgeMCP,
	"mcp.rug-pull":      judgeMCP,
	"mcp.description":   judgeMCP,
	"mcp.known-servers": judgeMCP,
	"mcp.protocol":      judgeMCP,

	"approval.subagent":      judgeApproval,
	"approval.identity":      judgeApproval,
	"approval.replay":        judgeApproval,
	"approval.decision-form": judgeApproval,
	"approval.authority":     judgeApproval,
	"approval.flood":         judgeApproval,
	"approval.drift":         judgeApproval,
	"approval.allow-always":  judgeApproval,

	"display.command": judgeDisplay,
	"display.markup":  judgeDisplay,
	"display.fields":  judgeDisplay,

	"shell.chain":          judgeShell,
	"shell.long-chain":     judgeShell,
	"shell.substitution":   judgeShell,
	"shell.redirect-write": judgeShell,
	"shell.arg-exec":       judgeShell,
	"shell.safebins":       judgeShell,
	"shell.wrapper":        judgeShell,
	"shell.obfuscation":    judgeShell,
	"shell.path-hijack":    judgeShell,
	"shell.everyday":       judgeShell,

	"gate.integrity": judgeIntegrity,
	"http.host":      judgeHTTP,
	"http.path":      judgeHTTP,
	"ws.origin":      judgeWebSocket,
	"ws.auth":        judgeWebSocket,

	"path.traversal":   judgeFiles,
	"path.tool-parity": judgeFiles,
	"path.alias":       judgeFiles,
	"path.sensitive":   judgeFiles,

	"path.sandbox-bind":   judgeBindMount,
	"path.sandbox-config": judgeSandboxOptions,

	"env.injection": judgeEnvironment,
	"env.key-form":  judgeEnvironment,

	"url.literal":          judgeURL,
	"url.scheme":           judgeURL,
	"url.resolve-redirect": judgeURL,

	"config.exec-grant": judgeFiles,
	"config.self-grant": judgeFiles,
}

// later says why classes of a surface cannot be judged yet.
var later = map[string]string{
	"path":   "nothing unpacks archives yet",
	"url":    "nothing fetches yet",
	"memory": "there is no memory yet",
}

// required are the classes, and the subjects of gate.integrity, of which no case may be skipped.
var (
	required = []string{
		"ws.origin", "ws.auth", "http.host", "http.path", "mcp.name", "mcp.schema", "mcp.args", "approval.subagent", "approval.identity", "approval.drift", "approval.allow-always",
		"approval.replay", "approval.decision-form", "approval.authority", "approval.flood", "display.command", "display.markup", "display.fields", "config.self-grant", "url.literal", "url.scheme",
		"path.sandbox-bind", "path.sandbox-config",
	}
	requiredSubjects = []string{"policy", "config", "hooks-runner", "client-hook-adapter", "audit", "owner", "unix-socket", "log", "bind"}
)

func isRequired(c *attack) bool {
	for _, class := range required {
		if c.Class == class {
			return true
		}
	}
	for _, subject := range requiredSubjects {
		if c.Class == "gate.integrity" && c.Attempt.has(subject) {
			return true
		}
	}
	return false
}

// TestAttackVectors runs the corpus. Every core attack that can be judged must be held and every core control allowed;
// attacks at level guard are only counted.
func TestAttackVectors(t *testing.T) {
	score := newTallies()
	for _, c := range loadAttacks(t) {
		o := run(t, c)
		if score.count(c, o) {
			continue
		}
		text := fmt.Sprintf("%s %s %s: wanted %s, got %q after %v (%s): %s", c.ID, c.Class, c.Level, c.Want, o.answer, o.took, o.why, c.Why)
		switch {
		case o.skip != "" && isRequired(c):
			t.Errorf("%s %s is skipped: %s", c.ID, c.Class, o.skip)
		case o.skip != "":
		case c.Level == "core":
			t.Error(text)
		default:
			t.Log(text)
		}
	}
	score.print(t)
}

// run judges a case in a time of its own. A slow answer gets more chances: a disk that other programs use may keep any
// answer waiting once, but an attack that makes the gate slow does so each time.
func run(t *testing.T, c *attack) (o outcome) {
	judge := judges[c.Class]
	if judge == nil {
		reason := later[c.Class]
		if reason == "" {
			reason = later[c.Surface]
		}
		if reason == "" {
			reason = "no judge for class " + c.Class
		}
		return outcome{skip: reason}
	}
	for range chances {
		t.Run(c.ID, func(t *testing.T) {
			if inRealTime(c) {
				o = contain(t, c, judge)
				return
			}
			synctest.Test(t, func(t *testing.T) { o = contain(t, c, judge) })
		})
		if o.skip != "" || o.took <= slowest {
			break
		}
	}
	return o
}

// inRealTime reports whether a case is played over real sockets, which have no other time. Those that show something
// make a time of their own for the rest.
func inRealTime(c *attack) bool {
	return strings.HasPrefix(c.Class, "http.") || strings.HasPrefix(c.Class, "ws.") || c.Surface == "display" ||
		c.Class == "path.sandbox-config" ||
		c.Class == "gate.integrity" && (c.Attempt.has("unix-socket") || c.Attempt.has("log"))
}

const chances = 5

// contain turns a panic into an outcome that holds nothing.
func contain(t *testing.T, c *attack, judge judge) (o outcome) {
	defer func() {
		if v := recover(); v != nil {
			o = outcome{answer: harmful, why: fmt.Sprintf("panic: %v\n%s", v, debug.Stack())}
		}
	}()
	o, err := judge(t, c)
	var missing unsupported
	switch {
	case errors.As(err, &missing):
		return outcome{skip: "not implemented: " + strings.ToValidUTF8(missing.what, "?")}
	case err != nil:
		return outcome{answer: harmful, why: "the case could not be played: " + err.Error()}
	}
	return o
}
