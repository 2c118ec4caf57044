package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolward/toolward/policy/report"
)

// waits compiles teg.approval.waitMs.
func (b *builder) waits(entries map[string]int64, at report.Path) overrides {
	o, errs := newKeyed(entries, at, b.words.HasTool, func(entry *override, ms int64) string {
		entry.wait = time.Duration(ms) * time.Millisecond
		return wrongWait(ms)
	})
	b.Errs = append(b.Errs, errs...)
	b.prepare(&o)
	for _, tool := range slices.Sorted(maps.Keys(o.byTool)) {
		t := o.byTool[tool]
		if t.tool != nil {
			b.warnWait(tool, t.tool, at)
		}
		for _, action := range slices.Sorted(maps.Keys(t.actions)) {
			b.warnWait(tool, t.actions[action], at)
		}
	}
	return o
}

func (b *builder) warnWait(tool string, o *override, at report.Path) {
	if !b.words.Knows(tool) {
		b.Warn(report.Warning{
			Path: at.At(o.key), Code: report.CheckUnknownEntries,
			Text: fmt.Sprintf("no tool is called %q%s", tool, report.DidYouMean(tool, b.words.Names())),
		})
	}
}

func (b *builder) checkWait(ms int64, at report.Path) {
	if problem := wrongWait(ms); problem != "" {
		b.Fail(at, "%s", problem)
	}
}

// wrongWait says what is wrong with a wait; "" if nothing is.
func wrongWait(ms int64) string {
	if ms < minTimeoutMs || ms > maxWaitMs {
		return fmt.Sprintf("%d is out of range; use %d to %d milliseconds (7 days)", ms, minTimeoutMs, int64(maxWaitMs))
	}
	return ""
}
