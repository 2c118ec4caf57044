package docker

import (
	"testing"
	"time"
)

// Where the control group cannot be seen, as with a container engine in the network, the container engine tells when memory
// runs out.
func TestMemoryThatRanOutIsTold(t *testing.T) {
	e := testEngine(t)
	spec := testSpec(t, newWorkspace(t))
	spec.Limits.Memory = 64 << 20
	h := ensure(t, e, spec).(*box)
	h.group = nil
	if out, status := output(t, h, shell("tail /dev/zero")); status.Code == 0 {
		t.Errorf("a command that takes all memory says %q, %+v", out, status)
	}
	for deadline := time.After(patience); h.oomKills() == 0; {
		select {
		case <-deadline:
			t.Fatal("nobody tells")
		case <-time.After(10 * time.Millisecond): // what is waited for happens in another process
		}
	}
	alive(t, h)
}
