package live_test

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// TestLimitsAreTold: a command that meets a limit of its sandbox is told which one, by what real programs say of it.
func TestLimitsAreTold(t *testing.T) {
	live.Need(t, live.Program("python3"))
	g := newGuardedMachine(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native",
		"limits": {"pids": 64, "memory": "256m", "disk": "64m", "openFiles": 64, "fileSize": "4m", "cpus": 0.5}}}}}`)
	session := g.connect(t)
	for _, one := range []struct{ command, want string }{
		{`bash -c 'for i in $(seq 200); do sleep 5 & done; wait'; exit 1`, "sandbox.limits.pids"},
		{`python3 -c 'import threading, time; [threading.Thread(target=time.sleep, args=(5,), daemon=True).start() for i in range(200)]'`, "sandbox.limits.pids"},
		{`python3 -c '[x for x in [bytearray(64 << 20) for i in range(20)]]'`, "sandbox.limits.memory"},
		{`python3 -c 'a = [open("/dev/null") for i in range(200)]'`, "sandbox.limits.openFiles"},
		{`python3 -c 'import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); open("large", "wb").write(bytes(8 << 20))'`, "sandbox.limits.fileSize"},
		{`dd if=/dev/zero of=/run/full bs=1M count=3 conv=notrunc; for i in $(seq 100); do head -c 3000000 /dev/zero > /tmp/$i || exit 1; done`, "sandbox.limits.memory"},
		{`for i in $(seq 60); do head -c 3000000 /dev/zero > f$i; done; sleep 60`, "sandbox.limits.disk"},
	} {
		if got := g.call(t, session, "exec", map[string]any{"command": one.command, "yieldMs": 100_000}); !strings.Contains(got, one.want) {
			t.Errorf("%s:\n%.1500s\nwant %s", one.command, got, one.want)
		}
	}
	if got := g.call(t, session, "exec", map[string]any{"command": "while :; do :; done", "timeout": 1}); !strings.Contains(got, "sandbox.limits.cpus") {
		t.Errorf("a command that took too long: %q", got)
	}
}
