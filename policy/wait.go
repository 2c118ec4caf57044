package policy

import (
	"time"

	"github.com/toolward/toolward"
)

// waitOf is how long people may take for a call: what the rule that asks says, else what is set for the tool, else 0,
// which is as long as for any call.
func (s *Snapshot) waitOf(r *toolward.Request, c *classified) time.Duration {
	if c.wait > 0 || len(s.waits.byTool) == 0 && len(s.waits.globs) == 0 {
		return c.wait
	}
	sub := subject{tool: r.Tool.Name, params: r.Params, elevated: r.Facts.Elevated}
	sub.readParams(r.Facts.Action)
	if entry := s.waits.find(&sub, s.Tool(sub.tool) != nil || s.table[sub.tool] != nil); entry != nil {
		return entry.wait
	}
	return 0
}
