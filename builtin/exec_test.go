package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
)

func TestExec(t *testing.T) {
	w := newWorld(t)
	w.put("ws/dir/f", "x\n")
	for _, c := range []struct {
		name    string
		args    args
		want    string
		isError bool
		code    int // -1: ended by a signal
	}{
		{"output", args{"command": "echo hi"}, "hi\n", false, 0},
		{"both streams in order", args{"command": "echo a; echo b >&2; echo c"}, "a\nb\nc\n", false, 0},
		{"no output", args{"command": "true"}, "(no output)", false, 0},
		{"exit code", args{"command": "echo bad; exit 3"}, "bad\n\n(Command exited with code 3)", false, 3},
		{"not found", args{"command": "no-such-program-here 2>/dev/null"}, "(no output)\n\n(Command exited with code 127 (not found))", true, 127},
		{"not executable", args{"command": "./dir/f 2>/dev/null"}, "(no output)\n\n(Command exited with code 126 (not executable))", true, 126},
		{"signal", args{"command": "kill -9 $$"}, "(no output)\n\n(Command was ended by signal SIGKILL)", true, -1},
		{"directory", args{"command": "pwd; echo $PWD; cat f", "workdir": "dir"}, "DIR\nDIR\nx\n", false, 0},
		{"text that begins with a dash", args{"command": "-x 2>/dev/null; echo ran"}, "ran\n", false, 0},
		{"several lines", args{"command": "cat <<'EOF'\n$HOME \"'\nEOF\necho é"}, "$HOME \"'\né\n", false, 0},
		{"no input", args{"command": "cat; echo end"}, "end\n", false, 0},
		{"environment of the call", args{"command": "echo $GREETING", "env": args{"GREETING": "a b\nc"}}, "a b c\n", false, 0},
		{"bytes that are no text", args{"command": `printf 'a\377\000\033[31mb\033[0m\033]0;title\007c\n'`}, "a\ufffdbc\n", false, 0},
		{"host named", args{"command": "echo hi", "host": " Gateway "}, "hi\n", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.TB = t
			result := w.run("exec", c.args)
			want := strings.ReplaceAll(c.want, "DIR", w.workspace+"/dir")
			if got := text(result); got != want || result.IsError != c.isError {
				t.Errorf("got %q (error %t), want %q (error %t)", got, result.IsError, want, c.isError)
			}
			d := details[finishedDetails](t, result)
			switch {
			case c.code < 0 && (d.ExitCode != nil || d.Signal != "SIGKILL"):
				t.Errorf("details %+v", d)
			case c.code >= 0 && (d.ExitCode == nil || *d.ExitCode != c.code):
				t.Errorf("details %+v", d)
			}
		})
	}
}

func TestExecRefusesBadArguments(t *testing.T) {
	w := newWorld(t)
	w.put("ws/file", "")
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"empty", args{"command": " \n"}, "command: is empty"},
		{"NUL", args{"command": "echo a\x00; rm x"}, "NUL"},
		{"too long", args{"command": strings.Repeat("x", maxCommand+1)}, "command: is longer than 65536 bytes"},
		{"no such directory", args{"command": "true", "workdir": "gone"}, "workdir: is not an existing directory"},
		{"file as directory", args{"command": "true", "workdir": "file"}, "workdir: is not an existing directory"},
		{"no sandbox", args{"command": "true", "host": "sandbox"}, `host: there is no sandbox`},
		{"other host", args{"command": "true", "host": "moon"}, `host: "moon" is none of`},
		{"not the configured host", args{"command": "true", "host": "node"}, "host: commands run on"},
		{"no node", args{"command": "true", "node": "pi"}, "node: there is no node"},
		{"security", args{"command": "true", "security": "lax"}, `security: "lax" is none of`},
		{"ask", args{"command": "true", "ask": "never"}, `ask: "never" is none of`},
		{"no time", args{"command": "true", "timeout": 0}, "timeout"},
		{"unknown parameter", args{"command": "true", "cmd": "false"}, "cmd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.request("exec", c.args)
			checkError(t, err, c.want)
		})
	}
}

func TestFactsOfExec(t *testing.T) {
	w := newWorld(t)
	r := w.facts("exec", args{"command": "ls  -l", "env": args{"A": "1", "B": "2"}, "elevated": true})
	f := r.Facts
	want := []string{"workdir " + w.workspace, "environment b520ef3fdba6b3bf44b4f861557837d41373b19d5667a5ad2e9b0b46f1f3baf1"}
	if diff := cmp.Diff(want, f.Bound[:2]); diff != "" || len(f.Bound) != 3 || f.Command != "ls  -l" || !f.Mutates || !f.Elevated || len(f.Findings) > 0 {
		t.Errorf("%+v\n%s", f, diff)
	}
}

func TestEnvironmentOfACommand(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.PathPrepend = []string{"/opt/tools"} })
	got := w.ok("exec", args{"command": "env | sort", "env": args{"CI": "1"}})
	var names []string
	for line := range strings.Lines(got) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name == "_" || name == "SHLVL" || name == "OLDPWD" {
			continue // the shell's own
		}
		names = append(names, name)
		if name == "PATH" && value != "/opt/tools:/usr/local/bin:/usr/bin:/bin" {
			t.Errorf("PATH is %q", value)
		}
	}
	if diff := cmp.Diff([]string{"CI", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "HOME", "LANG", "PATH", "PWD", "TERM"}, names); diff != "" {
		t.Errorf("a command sees other variables than it should: %s", diff)
	}
	for _, name := range []string{"LD_PRELOAD", "ld_preload", "PATH", "BASH_ENV", "LD_PRELOAD ", "A=B", "1A", "TOOLWARD_HOME", "GIT_SSH", "npm_config_script_shell"} {
		r := w.facts("exec", args{"command": "true", "env": args{"OK": "1", name: "x"}})
		if len(r.Facts.Findings) != 1 || r.Facts.Findings[0].Code != "env_dangerous" || r.Facts.Findings[0].Effect != toolward.EffectDeny {
			t.Errorf("%q: findings %+v", name, r.Facts.Findings)
		}
		if _, err := r.Tool.Run(t.Context(), r); err == nil {
			t.Errorf("%q: the command ran", name)
		}
	}
}

// TestValuesOfVariablesAreSeen: what a variable names is used, whatever the command seems to do.
func TestValuesOfVariablesAreSeen(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(w.home+"/.ssh", 0o700))
	w.put("home/.ssh/id_rsa", "key")
	w.put("ws/server.pem", "key")
	w.put("ws/Makefile", "all:")
	w.must(os.Mkdir(w.workspace+"/my dir", 0o700))
	w.put("ws/my dir/server.pem", "key")
	w.must(os.Symlink("server.pem", w.workspace+"/harmless.txt"))
	for _, c := range []struct {
		value string
		want  string
	}{
		{"~/.ssh/id_rsa", "env_dangerous deny"},
		{w.home + "/.ssh/id_rsa", "env_dangerous deny"},
		{"file://" + w.home + "/.ssh/id_rsa", "env_dangerous deny"},
		{"server.pem", "env_dangerous deny"},
		{"harmless.txt", "env_dangerous deny"},
		{"a:server.pem:b", "env_dangerous deny"},
		{"--key=@server.pem -v", "env_dangerous deny"},
		{"/etc/shadow", "env_dangerous deny"},
		{w.home + "/.toolward", "env_dangerous deny"},
		{strings.Repeat("a:", 300) + "server.pem", "env_dangerous deny"},
		{"https://a," + w.home + "/.ssh/id_rsa", "env_dangerous deny"},
		{"a,file://" + w.home + "/.ssh/id_rsa", "env_dangerous deny"},
		{"sqlite:///" + w.home + "/.ssh/id_rsa", "env_dangerous deny"},
		{"x:" + w.workspace + "/my dir/server.pem", "env_dangerous deny"},
		{"--ca my dir/server.pem", "env_dangerous deny"},
		{strings.Repeat("y", 300) + "/../server.pem", "env_dangerous deny"},
		{strings.Repeat("{a=/usr/", 2000), "env_path ask"},
		{"other.pem", "env_path ask"},
		{"Makefile", "env_path ask"},
		{".git/config", "env_path ask"},
		{"/srv/x", "env_path ask"},
		{strings.Repeat("../", 20) + "srv/x", "env_path ask"},
		{"1", ""},
		{"dist/out.txt", ""},
		{"production", ""},
		{"/usr/bin", ""},
		{"https://example.com/a", ""},
		{"America/New_York", ""},
		{"postgres://u:p@localhost:5432/db?sslmode=disable", ""},
		{"debug,app:*,-x", ""},
		{`{"a": [1, 2], "b": "c/d"}`, ""},
		{strings.Repeat("x", 5000), ""},
	} {
		r := w.facts("exec", args{"command": "true", "env": args{"ACME_SETTING": c.value}})
		got := ""
		for _, f := range r.Facts.Findings {
			if strings.HasPrefix(f.Code, "env_") {
				got = f.Code + " " + f.Effect.String()
			}
		}
		if got != c.want {
			t.Errorf("%.60s: %q, want %q", c.value, got, c.want)
		}
	}
	for _, given := range []string{"ACME_BINARY=./x", "ACME_PATH=./lib", "ACME_COMMAND=sh -c id", "ACME_FLAGS=-fplugin=./x.so", "ACME_SHELL=/bin/sh"} {
		name, value, _ := strings.Cut(given, "=")
		r := w.facts("exec", args{"command": "true", "env": args{name: value}})
		if len(r.Facts.Findings) == 0 || r.Facts.Findings[0].Code != "env_dangerous" {
			t.Errorf("%s: %+v", given, r.Facts.Findings)
		}
	}
}

func TestOutputFloodIsBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ResultChars = 2000; c.OutputChars = 10_000 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result := w.run("exec", args{"command": "echo first; yes | head -c 200000000; echo last"})
	runtime.ReadMemStats(&after)
	got := text(result)
	if len(got) > 2200 || !strings.HasPrefix(got, "first\ny\n") || !strings.HasSuffix(got, "y\nlast\n") || !strings.Contains(got, "[… 199998011 characters left out …]\n") {
		t.Errorf("%d bytes: %q … %q", len(got), got[:20], got[len(got)-20:])
	}
	if held := int64(after.HeapInuse) - int64(before.HeapInuse); held > 32<<20 {
		t.Errorf("%d MiB held", held>>20)
	}
	result = w.run("exec", args{"command": "yes", "timeout": 0.5})
	if d := details[finishedDetails](t, result); !d.TimedOut || !result.IsError || len(text(result)) > 2300 {
		t.Errorf("endless: %+v", d.TimedOut)
	}
}

// marked starts sleeping processes that a test can find again.
func marked(t *testing.T) (sleep string, left func() []string) {
	t.Helper()
	mark := strconv.Itoa(1_000_000 + os.Getpid()%100_000*10 + len(t.Name())%10)
	return "sleep " + mark, func() []string {
		lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		var found []string
		for _, list := range lists {
			if line, err := os.ReadFile(list); err == nil && strings.Contains(string(line), mark) {
				found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return found
	}
}

// noneLeft waits a moment for processes that were sent KILL to vanish, and fails if some do not.
func noneLeft(t *testing.T, left func() []string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		found := left()
		if len(found) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running: %q", found)
		}
	}
	noZombies(t)
}

// noZombies looks for children of this process that nobody collected.
func noZombies(t *testing.T) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=,args=", "--ppid", strconv.Itoa(os.Getpid())).Output()
	if err != nil && len(out) == 0 {
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Z") {
			t.Errorf("a zombie is left: %s", line)
		}
	}
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	needProc(t)
	for name, command := range map[string]string{
		"children":             "SLEEP & SLEEP & SLEEP",
		"grandchildren":        "sh -c 'sh -c \"SLEEP; true\"; true'; true",
		"deaf to TERM":         "trap '' TERM; SLEEP; SLEEP",
		"a group of their own": "set -m; SLEEP & SLEEP",
		"a session of its own": "setsid sh -c 'SLEEP; true' & SLEEP; true",
		"stopped":              "SLEEP & kill -STOP $!; wait; true",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sleep, left := marked(t)
			result := w.run("exec", args{"command": strings.ReplaceAll(command, "SLEEP", sleep), "timeout": 0.3})
			if d := details[finishedDetails](t, result); !d.TimedOut || !result.IsError {
				t.Errorf("%+v", d)
			}
			if !strings.Contains(text(result), "timed out after 300ms") {
				t.Errorf("got %q", text(result))
			}
			noneLeft(t, left)
		})
	}
}

func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("there is no /proc here to look for processes")
	}
}

// TestLeftoversDoNotHang: a process that a command leaves in the background holds the output open; the call must
// come back at once, and the process must not stay.
func TestLeftoversDoNotHang(t *testing.T) {
	needProc(t)
	for name, command := range map[string]string{
		"with the output":    "SLEEP & echo done",
		"without the output": "SLEEP >/dev/null 2>&1 & echo done",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sleep, left := marked(t)
			start := time.Now()
			result := w.run("exec", args{"command": strings.ReplaceAll(command, "SLEEP", sleep)})
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			if !strings.HasPrefix(text(result), "done\n") || result.IsError {
				t.Errorf("got %q", text(result))
			}
			if note := strings.Contains(text(result), "left running were ended"); note != (name == "with the output") {
				t.Errorf("got %q", text(result))
			}
			noneLeft(t, left)
		})
	}
}

// TestEscapedProcessDoesNotHang: a process that left the group and whose parent is gone cannot be found, but it
// must not hold the call.
func TestEscapedProcessDoesNotHang(t *testing.T) {
	w := newWorld(t)
	start := time.Now()
	if got := w.ok("exec", args{"command": "(setsid sleep 7 &) ; echo done"}); !strings.HasPrefix(got, "done\n") {
		t.Errorf("got %q", got)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestCancelEndsTheCommand(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	sleep, left := marked(t)
	r := w.facts("exec", args{"command": "touch started; " + sleep + "; true"})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client went away")
	go func() {
		for {
			if _, err := os.Stat(w.workspace + "/started"); err == nil {
				cancel(gone)
				return
			}
			runtime.Gosched()
		}
	}()
	if _, err := r.Tool.Run(ctx, r); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	noneLeft(t, left)
	if n := len(w.box.sessions.byID); n != 0 {
		t.Errorf("%d commands are remembered", n)
	}
	// A call that was canceled before it ran starts nothing.
	r = w.facts("exec", args{"command": "touch never"})
	if _, err := r.Tool.Run(ctx, r); err == nil {
		t.Error("a cancelled call ran")
	}
	w.holds("ws/never", "<gone>")
}

func TestRunningCommandsAreBounded(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Commands = 2; c.CommandsTotal = 3 })
	for range 2 {
		w.ok("exec", args{"command": "sleep 100", "background": true})
	}
	w.fails("exec", args{"command": "touch never"}, "too many commands are running")
	w.agent = "other"
	w.ok("exec", args{"command": "sleep 100", "background": true})
	w.fails("exec", args{"command": "touch never"}, "too many commands are running")
	w.holds("ws/never", "<gone>")
}

func TestCloseEndsEverything(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	sleep, left := marked(t)
	for range 3 {
		w.ok("exec", args{"command": sleep + "; true", "background": true})
	}
	if err := w.box.Close(); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, left)
	w.fails("exec", args{"command": "touch never"}, "the gateway is stopping")
}

func TestNoGoroutineOrDescriptorStays(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	w.ok("exec", args{"command": "true"})
	count := func() (int, int) {
		fds, _ := os.ReadDir("/proc/self/fd")
		fds = slices.DeleteFunc(fds, func(fd os.DirEntry) bool {
			// What watches the directories of programs, once for all commands, is opened when it is first of use.
			what, _ := os.Readlink("/proc/self/fd/" + fd.Name())
			return strings.HasPrefix(what, "anon_inode:") || strings.HasSuffix(what, "/mountinfo")
		})
		return runtime.NumGoroutine(), len(fds)
	}
	goroutines, descriptors := count()
	for i := range 8 {
		w.run("exec", args{"command": fmt.Sprintf("echo %d; sleep 100 &", i)})
		w.run("exec", args{"command": "sleep 100", "timeout": 0.01})
	}
	for deadline := time.Now().Add(time.Minute); ; runtime.Gosched() {
		g, d := count()
		if g <= goroutines+1 && d <= descriptors+1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("goroutines %d → %d, descriptors %d → %d", goroutines, g, descriptors, d)
		}
	}
	noZombies(t)
}
