package protocol

import (
	"testing"

	"github.com/toolward/toolward/identity"
)

// rightOf is what a person needs for each method, besides the scope of their connection; methods that are not here need no
// person before they are handled. A right that changes is a decision: it changes here as well.
var rightOf = map[string]identity.Right{
	"exec.approval.resolve": identity.RightAnswer,
	"exec.approval.list":    identity.RightAnswer,
	"exec.approval.get":     identity.RightAnswer,
	"approval.resolve":      identity.RightAnswer,
	"approval.list":         identity.RightAnswer,
	"approval.get":          identity.RightAnswer,
	"exec.approvals.get":    identity.RightAdmin,
	"exec.approvals.set":    identity.RightConfigure,
	"audit.list":            identity.RightWatch,
	"audit.tail":            identity.RightWatch,
}

func TestTheRightOfEachMethod(t *testing.T) {
	named := 0
	for _, m := range methodTable() {
		want, listed := rightOf[m.name]
		if got := m.does.Right(); got != want {
			t.Errorf("%s needs %q, want %q", m.name, got, want)
		}
		if listed {
			named++
		}
		if m.does != "" && !m.does.Right().Known() {
			t.Errorf("%s is %q, which nobody may", m.name, m.does)
		}
	}
	if named != len(rightOf) {
		t.Errorf("%d methods need a right, want %d", named, len(rightOf))
	}
}
