package live_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// ways are how what runs in a sandbox is ended from outside.
var ways = map[string]map[string]func(b *boxed){
	"native": {"program inside": killInside},
	"docker": {
		"container killed":  func(b *boxed) { b.docker(append([]string{"kill"}, b.runningContainers()...)...) },
		"container removed": func(b *boxed) { b.docker(append([]string{"rm", "--force"}, b.runningContainers()...)...) },
		"program inside": func(b *boxed) {
			for _, name := range b.runningContainers() {
				pid, err := strconv.Atoi(b.docker("inspect", "--format", "{{.State.Pid}}", name))
				if err == nil {
					err = syscall.Kill(pid, syscall.SIGKILL)
				}
				if err != nil {
					b.t.Error(err)
				}
			}
		},
	},
}

// killInside kills the first processes of native sandboxes: those with children.
func killInside(b *boxed) {
	killed := 0
	for _, p := range descend(b.Pid()) {
		if len(descend(p.pid)) > 0 {
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
				b.t.Error(err)
			}
			killed++
		}
	}
	if killed == 0 {
		b.t.Error("there is nothing to kill")
	}
}

func (b *boxed) runningContainers() (names []string) {
	for name, runs := range b.containers() {
		if runs {
			names = append(names, name)
		}
	}
	return names
}

// TestSandboxEndedFromOutside ends a sandbox while a command, reads and writes are under way in it: each says what happened
// and what to do, a file has its old or its new content, and the next call works.
func TestSandboxEndedFromOutside(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine string) {
		b := newBoxed(t, engine, "")
		b.start()
		b.token("coder")
		for way, end := range ways[engine] {
			t.Run(way, func(t *testing.T) { b.endedWhileUsed(t, end) })
		}
		b.removeAll()
	})
}

func (b *boxed) endedWhileUsed(t *testing.T, end func(*boxed)) {
	t.Helper()
	const size = 2 << 20
	old, fresh := bytes.Repeat([]byte("a"), size), strings.Repeat("b", size)
	file := filepath.Join(b.Workspace, "file")
	if err := os.WriteFile(file, old, 0o666); err != nil {
		t.Fatal(err)
	}
	marker := strconv.Itoa(2_000_000 + os.Getpid())
	session, err := b.connect(t.Context(), "coder", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var calls sync.WaitGroup
	calls.Go(func() {
		said, err := callTool(ctx, session, "exec", map[string]any{"command": "sleep " + marker})
		if err != nil || !strings.Contains(said, "sandbox") || !strings.Contains(said, "ended") {
			t.Errorf("the command says %q, %v", said, err)
		}
	})
	ended := make(chan struct{})
	for tool, arguments := range map[string]map[string]any{
		"read": {"path": "file"}, "write": {"path": "file", "content": fresh}, "search": {"pattern": "zzz"},
	} { // what they say while it ends is theirs to say; that they come to an end is looked at
		calls.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if said, err := callTool(ctx, session, tool, arguments); err != nil || strings.Contains(said, "panic") {
					t.Errorf("%s: %.200q, %v", tool, said, err)
				}
			}
		})
	}
	eventually(t, "the command runs", func() bool { return sleeping(marker) > 0 })
	end(b)
	eventually(t, "the command has ended", func() bool { return sleeping(marker) == 0 })
	close(ended)
	calls.Wait()
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, old) && string(data) != fresh {
		t.Errorf("the file holds %d bytes, %v: half of something", len(data), err)
	}
	if said := b.do("coder", "exec", map[string]any{"command": "echo again"}); !strings.Contains(said, "again") {
		t.Errorf("the next call says %q", said)
	}
	b.mustBeTidy(t, b.Workspace)
}

// mustBeTidy fails for files that were being written. Those of a program that was killed are removed at the next write.
func (b *boxed) mustBeTidy(t *testing.T, dir string) {
	t.Helper()
	if said := b.do("coder", "write", map[string]any{"path": "tidy", "content": "x"}); strings.Contains(said, "error") {
		t.Errorf("write: %q", said)
	}
	for _, name := range filesIn(t, dir) {
		if strings.Contains(name, ".toolward-write-") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestContainerEngineRestarts stops the container engine while a command runs in a sandbox: calls are refused and say why,
// and once it is back they work, without a restart of the daemon.
func TestContainerEngineRestarts(t *testing.T) {
	own := live.OwnDockerd(t)
	t.Setenv("DOCKER_HOST", own.Host)
	b := newBoxed(t, "docker", "")
	b.start()
	b.token("coder")
	writeFile(t, filepath.Join(b.Workspace, "file"), "text")
	marker := strconv.Itoa(3_000_000 + os.Getpid())
	running := make(chan string, 1)
	go func() { running <- b.do("coder", "exec", map[string]any{"command": "sleep " + marker}) }()
	eventually(t, "the command runs", func() bool { return sleeping(marker) > 0 })
	if err := own.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case said := <-running:
		if strings.Contains(said, "code 0") {
			t.Errorf("the command says %q", said)
		}
	case <-time.After(patience):
		t.Fatal("the command's call does not end")
	}
	for tool, arguments := range map[string]map[string]any{"exec": {"command": "echo x"}, "read": {"path": "file"}} {
		if said := b.do("coder", tool, arguments); !strings.Contains(said, "docker API") || !strings.Contains(said, "start Docker") {
			t.Errorf("%s while the container engine is away says %q", tool, said)
		}
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	if said := b.do("coder", "exec", map[string]any{"command": "echo again"}); !strings.Contains(said, "again") {
		t.Errorf("the next call says %q", said)
	}
	b.removeAll()
}

// diskVariable names a small disk that root has mounted for a test of an ordinary user.
const diskVariable = "TOOLWARD_TEST_DISK"

// TestFullDiskInSandbox fills the disk of the workspace: commands and tools say so, old files are whole, and nothing half
// written is left.
func TestFullDiskInSandbox(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine string) {
		b := newBoxed(t, engine, "")
		b.Workspace = smallDisk(t)
		b.start()
		b.token("coder")
		old := "first line\n" + strings.Repeat("old line\n", 20_000)
		if err := os.WriteFile(filepath.Join(b.Workspace, "kept"), []byte(old), 0o666); err != nil {
			t.Fatal(err)
		}
		b.mustSay(t, "exec", map[string]any{"command": "dd if=/dev/zero of=filler bs=4096"}, "No space left")
		for tool, arguments := range map[string]map[string]any{
			"write":       {"path": "kept", "content": strings.Repeat("new line\n", 40_000)},
			"edit":        {"path": "kept", "oldText": "first line\n", "newText": "new line\n"},
			"apply_patch": {"patch": "*** Begin Patch\n*** Add File: added\n+" + strings.Repeat("new line ", 10_000) + "\n*** End Patch\n"},
		} {
			want := "disk is full"
			if tool == "apply_patch" {
				want = "nothing was changed: the patch failed at added: no space left"
			}
			b.mustSay(t, tool, arguments, want)
		}
		b.mustSay(t, "write", map[string]any{"path": "made", "content": strings.Repeat("new line\n", 10_000)}, "disk is full")
		b.mustSay(t, "exec", map[string]any{"command": "cat kept > copy"}, "No space left")
		if data, err := os.ReadFile(filepath.Join(b.Workspace, "kept")); err != nil || string(data) != old {
			t.Errorf("the old file holds %d bytes, %v", len(data), err)
		}
		if left := filesIn(t, b.Workspace); !slices.Equal(left, []string{"copy", "filler", "kept"}) {
			t.Errorf("there are %v", left)
		}
		b.mustSay(t, "exec", map[string]any{"command": "rm filler copy; echo removed"}, "removed")
		b.mustSay(t, "write", map[string]any{"path": "made", "content": "new"}, "Created")
		b.removeAll()
	})
}

func (b *boxed) mustSay(t *testing.T, tool string, arguments map[string]any, want string) {
	t.Helper()
	if said := b.do("coder", tool, arguments); !strings.Contains(said, want) {
		t.Errorf("%s says %.300q, want %q", tool, said, want)
	}
}

// smallDisk mounts a small disk for a workspace.
func smallDisk(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(diskVariable); dir != "" {
		return dir
	}
	dir := t.TempDir()
	mount(t, dir, "size=1m,mode=0755")
	return dir
}

// TestRegistryOnAFullDisk: a sandbox that cannot be written down is refused, and nothing of it is left running.
func TestRegistryOnAFullDisk(t *testing.T) {
	for _, engine := range []string{"native", "docker"} {
		t.Run(engine, func(t *testing.T) {
			b := newBoxed(t, engine, "")
			disk := filepath.Join(b.State, "sandbox")
			if err := os.MkdirAll(disk, 0o700); err != nil {
				t.Fatal(err)
			}
			mount(t, disk, "size=64k,mode=0700")
			b.start()
			b.token("coder")
			filler := filepath.Join(disk, "filler")
			fill(t, filler)
			if said := b.do("coder", "exec", map[string]any{"command": "echo ran > ran"}); !strings.Contains(said, "no space left") || !strings.Contains(said, "sandbox") {
				t.Errorf("it says %q", said)
			}
			if _, err := os.Stat(filepath.Join(b.Workspace, "ran")); err == nil {
				t.Error("the command ran")
			}
			if engine == "docker" && len(b.containers()) > 0 {
				t.Errorf("containers are left: %v", b.containers())
			}
			b.mustHaveSoundFiles()
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			b.mustSay(t, "exec", map[string]any{"command": "echo again"}, "again")
			if n := len(b.list()); n != 1 {
				t.Errorf("%d sandboxes are listed", n)
			}
			b.removeAll()
			b.Stop()
		})
	}
}

// TestTwoHomes: the daemons of two homes on one machine do not touch each other's sandboxes, also when one is killed,
// starts again and removes all of its own.
func TestTwoHomes(t *testing.T) {
	for _, engine := range []string{"native", "docker"} {
		t.Run(engine, func(t *testing.T) {
			first, second := newBoxed(t, engine, ""), newBoxed(t, engine, `, "scope": "agent"`)
			marker := strconv.Itoa(4_000_000 + os.Getpid())
			for _, b := range []*boxed{first, second} {
				b.start()
				b.token("coder")
			}
			second.do("coder", "exec", map[string]any{"command": "sleep " + marker + "; echo whole > whole", "background": true})
			eventually(t, "the command of the second home runs", func() bool { return sleeping(marker) > 0 })
			// Both sandboxes would have one name, that of their agent: containers have one in all homes.
			said := first.do("coder", "exec", map[string]any{"command": "echo first"})
			if engine == "docker" && !strings.Contains(said, "not ours") && !strings.Contains(said, "not a sandbox of this") {
				t.Errorf("a name that another home has: %q", said)
			}
			if engine == "native" && !strings.Contains(said, "first") {
				t.Errorf("the first home: %q", said)
			}
			first.Kill()
			first.start()
			first.mustBeSwept(true)
			first.removeAll()
			first.Stop()
			slept := sleepers(marker)
			if len(slept) == 0 {
				t.Error("the command of the second home has ended")
			}
			if list := second.list(); len(list) != 1 || !list[0].Running {
				t.Errorf("the second home has %+v", list)
			}
			for _, pid := range slept {
				if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			}
			eventually(t, "the command of the second home goes on", func() bool {
				_, err := os.Stat(filepath.Join(second.Workspace, "whole"))
				return err == nil
			})
			second.removeAll()
		})
	}
}
