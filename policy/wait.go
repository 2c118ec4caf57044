package policy

import (
	"fmt"
	"time"

	"github.com/toolward/toolward"
)

// waits compiles teg.approval.waitMs.
func (b *builder) waits(entries map[string]int64, at Path) overrides {
	o, errs := newKeyed(entries, at, b.hasTool, func(entry *override, ms int64) string {
		entry.wait = time.Duration(ms) * time.Millisecond
		return wrongWait(ms)
	})
	b.errs = append(b.errs, errs...)
	b.prepare(&o)
	for _, tool := range sortedKeys(o.byTool) {
		t := o.byTool[tool]
		if t.tool != nil {
			b.warnWait(tool, t.tool, at)
		}
		for _, action := range sortedKeys(t.actions) {
			b.warnWait(tool, t.actions[action], at)
		}
	}
	return o
}

func (b *builder) warnWait(tool string, o *override, at Path) {
	if !b.knows(tool) {
		b.warn(Warning{
			Path: at.At(o.key), Code: CheckUnknownEntries,
			Text: fmt.Sprintf("no tool is called %q%s", tool, didYouMean(tool, b.knownNames())),
		})
	}
}

func (b *builder) checkWait(ms int64, at Path) {
	if problem := wrongWait(ms); problem != "" {
		b.fail(at, "%s", problem)
	}
}

// wrongWait says what is wrong with a wait; "" if nothing is.
func wrongWait(ms int64) string {
	if ms < minTimeoutMs || ms > maxWaitMs {
		return fmt.Sprintf("%d is out of range; use %d to %d milliseconds (7 days)", ms, minTimeoutMs, int64(maxWaitMs))
	}
	return ""
}

// waitOf is how long people may take for a call: what the rule that asks says, else what is set for the tool, else 0,
// which is as long as for any call.
func (s *Snapshot) waitOf(r *toolward.Request, c *classified) time.Duration {
	if c.wait > 0 || len(s.waits.byTool) == 0 && len(s.waits.globs) == 0 {
		return c.wait
	}
	sub := subject{tool: r.Tool.Name, params: r.Params, elevated: r.Facts.Elevated}
	sub.readParams(r.Facts.Action)
	if entry := s.waits.find(&sub, s.tools[sub.tool] != nil || s.table[sub.tool] != nil); entry != nil {
		return entry.wait
	}
	return 0
}
