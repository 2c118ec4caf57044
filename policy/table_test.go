package policy

import (
	"testing"

	"github.com/toolward/toolward/policy/visible"
)

// TestEveryToolHasARow: a tool of the catalog that the class table forgets would ask for everything.
func TestEveryToolHasARow(t *testing.T) {
	rows := newTable(PresetStrict)
	for _, name := range append(visible.CoreTools(), "list", "search", "whatsapp_login", visible.EgressTool) {
		if rows[name] == nil {
			t.Errorf("the class table has no row for %s", name)
		}
	}
	if len(rows) != 29 {
		t.Errorf("the class table has rows for %d tools, want 29", len(rows))
	}
}
