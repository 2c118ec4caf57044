//go:build linux

package job_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
)

// copyProgram puts a copy of an installed program somewhere.
func (b *bench) copyProgram(name, as string) string {
	b.Helper()
	from, err := exec.LookPath(name)
	if err != nil {
		b.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.dir, as)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		b.Fatal(err)
	}
	return path
}

func exchange(t testing.TB, a, b string) {
	t.Helper()
	must(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
}

// swaps are the ways to put another program where one was judged, and to take it away again.
var swaps = []struct{ name, path, one, other string }{
	{"link turned", "link", "link", "evil-link"},
	{"directory exchanged", "good/tool", "good", "evil"},
	{"file replaced", "good/tool", "good/tool", "evil/tool"},
}

// swapBench has two programs: one that does nothing, which is judged, and one that leaves a file.
func swapBench(t testing.TB, script bool) *bench {
	b := newBench(t)
	must(t, os.Mkdir(b.dir+"/good", 0o755))
	must(t, os.Mkdir(b.dir+"/evil", 0o755))
	if script {
		b.script("good/tool", "#!/bin/sh\nexit 0\n")
		b.script("evil/tool", "#!/bin/sh\ntouch marker\n")
	} else {
		b.copyProgram("true", "good/tool")
		b.copyProgram("touch", "evil/tool")
	}
	must(t, os.Symlink(b.dir+"/good/tool", b.dir+"/link"))
	must(t, os.Symlink(b.dir+"/evil/tool", b.dir+"/evil-link"))
	return b
}

func (b *bench) evilRan() bool {
	_, err := os.Stat(b.dir + "/marker")
	return err == nil
}

// TestChangedProgramNeverRuns exchanges what was judged before the start, 10,000 times each way.
func TestChangedProgramNeverRuns(t *testing.T) {
	for _, script := range []bool{false, true} {
		for _, s := range swaps {
			t.Run(fmt.Sprintf("%s, script %v", s.name, script), func(t *testing.T) {
				t.Parallel()
				b := swapBench(t, script)
				for range 10_000 {
					plan := b.plan("./" + s.path + " marker")
					exchange(t, b.dir+"/"+s.one, b.dir+"/"+s.other)
					if _, err := job.Start(plan, job.Streams{}); !errors.Is(err, job.ErrChanged) {
						t.Fatalf("started: %v", err)
					}
					exchange(t, b.dir+"/"+s.one, b.dir+"/"+s.other)
				}
				if b.evilRan() {
					t.Error("the other program ran")
				}
			})
		}
	}
}

// TestSwapsDuringStart exchanges while programs are started, at any moment between the comparison and the start, until
// that has happened 10,000 times.
func TestSwapsDuringStart(t *testing.T) {
	for _, s := range swaps[:2] { // replacing the file changes what it is compared by: nothing would ever start
		t.Run(s.name, func(t *testing.T) {
			b := swapBench(t, false)
			plan := b.plan("./" + s.path + " marker")
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 10_000 {
					exchange(t, b.dir+"/"+s.one, b.dir+"/"+s.other)
					time.Sleep(time.Microsecond) // lets the other side work
				}
			}()
			ran, refused := 0, 0
			for swapping := true; swapping; {
				select {
				case <-done:
					swapping = false
				default:
				}
				running, err := job.Start(plan, job.Streams{})
				if err != nil {
					refused++
					continue
				}
				ran++
				running.Release()
			}
			t.Logf("%d ran, %d were refused", ran, refused)
			if ran == 0 || refused == 0 {
				t.Errorf("%d ran and %d were refused: nothing was tried", ran, refused)
			}
			if b.evilRan() {
				t.Error("the other program ran")
			}
		})
	}
}

// TestWrittenProgram writes into a program that was judged.
func TestWrittenProgram(t *testing.T) {
	b := newBench(t)
	path := b.script("tool", "#!/bin/sh\necho good\n")
	plan := b.plan("./tool || echo more")
	plan.Segments[1].Op = job.Sequence
	info, err := os.Stat(path)
	must(t, err)
	b.script("tool", "#!/bin/sh\necho evil\n") // of the same size
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	got, err := runPlan(plan, nil)
	if !errors.Is(err, job.ErrChanged) || got.out != "" {
		t.Errorf("%v, output %q", err, got.out)
	}
}

// TestRefusalEndsTheJob: what follows a refusal was judged to follow something else.
func TestRefusalEndsTheJob(t *testing.T) {
	b := newBench(t)
	b.script("tool", "#!/bin/sh\necho tool\n")
	for _, text := range []string{
		"echo first; ./tool || touch made", "echo first; ./tool; touch made", "echo first; touch made | ./tool",
		"echo first; touch made | nice ./tool", "echo first; touch made | cat > refused; touch made",
		"echo first; cd refused; touch made", "echo first; touch made < refused",
	} {
		t.Run(text, func(t *testing.T) {
			plan := b.plan(text)
			refused := func() (*os.File, error) { return nil, place.ErrChanged }
			for i := range plan.Segments {
				s := &plan.Segments[i]
				for j := range s.Redirects {
					s.Redirects[j] = job.Output(1, "refused", refused)
				}
				for j := range s.Programs {
					if strings.HasSuffix(s.Programs[j].Path, "/tool") {
						s.Programs[j].Identity.Changed++
					}
				}
				if s.Chdir != nil {
					s.Chdir.Open = refused
				}
			}
			got := b.run(plan)
			var refusal *job.Refusal
			if !errors.As(got.result.Err, &refusal) || got.result.Code != 126 || got.out != "first\n" || got.err == "" {
				t.Errorf("%+v", got)
			}
			if _, err := os.Stat(b.dir + "/made"); err == nil {
				t.Error("the rest ran")
			}
		})
	}
}

// TestElsewhere: a cd that fails or is passed over must not make the rest run in another directory.
func TestElsewhere(t *testing.T) {
	for _, text := range []string{"cd sub; touch made", "cd sub || touch made", "false && cd sub; touch made", "cd sub; echo a > made"} {
		b := newBench(t)
		must(t, os.Mkdir(b.dir+"/sub", 0o700))
		plan := b.plan(text)
		must(t, os.Remove(b.dir+"/sub"))
		if got, err := runPlan(plan, nil); !errors.Is(err, job.ErrElsewhere) && !errors.Is(got.result.Err, job.ErrElsewhere) {
			t.Errorf("%s: %v, %+v", text, err, got)
		}
		if entries, _ := os.ReadDir(b.dir); len(entries) > 0 {
			t.Errorf("%s: it made %s", text, entries[0].Name())
		}
	}
}

// TestWorkingDirectory exchanges the directory: while it is judged, and while programs run in it.
func TestWorkingDirectory(t *testing.T) {
	b := newBench(t)
	for _, dir := range []string{"real", "other"} {
		must(t, os.Mkdir(filepath.Join(b.dir, dir), 0o755))
		b.write(dir+"/name", dir)
	}
	layout := place.Layout{Workspace: b.dir, Home: b.dir, StateDir: b.dir + "/state", ConfigFile: b.dir + "/state/config"}
	classifier, err := place.New(layout)
	must(t, err)
	judged, err := classifier.Resolve(b.dir, "real")
	must(t, err)
	open := func() (*os.File, error) {
		dir, err := place.OpenDir(judged)
		if err != nil {
			return nil, err
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(dir.Fd()), &st); err != nil || uint64(st.Dev) != judged.Device || st.Ino != judged.Inode {
			dir.Close()
			return nil, place.ErrChanged
		}
		return dir, nil
	}
	inReal := func(text string) job.Plan {
		plan := b.plan(text)
		plan.Dir = job.Directory{Name: "real", Path: judged.Real, Open: open}
		for i := range plan.Segments {
			plan.Segments[i].Dir = judged.Real
		}
		return plan
	}
	plan := inReal("cat name")
	for range 10_000 {
		exchange(t, b.dir+"/real", b.dir+"/other")
		if _, err := job.Start(plan, job.Streams{}); !errors.Is(err, place.ErrChanged) {
			t.Fatalf("another directory: %v", err)
		}
		exchange(t, b.dir+"/real", b.dir+"/other")
	}
	must(t, os.Rename(b.dir+"/other", b.dir+"/other2"))
	must(t, os.Rename(b.dir+"/real", b.dir+"/other"))
	must(t, os.Symlink(b.dir+"/other", b.dir+"/real"))
	if _, err := job.Start(plan, job.Streams{}); !errors.Is(err, place.ErrChanged) {
		t.Errorf("a link to it: %v", err)
	}
	must(t, os.Remove(b.dir+"/real"))
	must(t, os.Rename(b.dir+"/other", b.dir+"/real"))
	if got := b.run(plan); got.out != "real" {
		t.Errorf("%+v", got)
	}
	// The command itself may move it: the rest runs in the directory that was opened.
	plan = inReal("mv ../real ../moved && ln -s other2 ../real && cat name")
	if got := b.run(plan); got.out != "real" {
		t.Errorf("after it was moved: %+v", got)
	}
}

// TestEnvironment: a program gets the plan's variables and its own, and nothing of the gateway's.
func TestEnvironment(t *testing.T) {
	b := newBench(t)
	b.env = append(b.env, "TZ=UTC")
	plan := b.plan("env; TZ=CET env; cd / && env | sort")
	for i := range plan.Segments {
		if plan.Segments[i].Programs != nil && len(plan.Segments[i].Env) == 0 {
			plan.Segments[i].Env = []string{"CI=1"}
		}
	}
	plan.Env = nil
	got := b.run(plan)
	if want := "CI=1\nTZ=CET\nCI=1\nOLDPWD=" + b.dir + "\nPWD=/\n"; got.out != want {
		t.Errorf("%q, want %q", got.out, want)
	}
	plan.Segments = plan.Segments[:1]
	plan.Segments[0].Env = nil
	if got := b.run(plan); got.out != "" {
		t.Errorf("from nowhere: %q", got.out)
	}
	plan.Env = b.env
	plan.Segments[0].Env = []string{"TZ=CET"}
	if got := b.run(plan); strings.Count(got.out, "TZ=") != 1 || !strings.Contains(got.out, "TZ=CET\n") {
		t.Errorf("set twice: %q", got.out)
	}
}

// TestPanicIsARefusal: a place check that breaks must not let anything run.
func TestPanicIsARefusal(t *testing.T) {
	b := newBench(t)
	plan := b.plan("sleep 0; cat < in; touch made")
	plan.Segments[1].Redirects = []job.Redirect{job.Input(0, "in", func() (*os.File, error) { panic("broken") })}
	if got := b.run(plan); got.result.Err == nil || got.result.Code != 126 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(b.dir + "/made"); err == nil {
		t.Error("the rest ran")
	}
}

// TestWrappersAreKept: a wrapper gets the path of the program that was judged, not a name to look for.
func TestWrappersAreKept(t *testing.T) {
	b := newBench(t)
	must(t, os.Mkdir(b.dir+"/bin", 0o755))
	b.script("bin/tool", "#!/bin/sh\necho judged\n")
	plan := b.plan("timeout 5 nice ./bin/tool")
	plan.Segments[0].Argv[3] = "tool"
	if got := b.run(plan); got.out != "judged\n" {
		t.Errorf("%+v", got)
	}
	plan.Segments[0].Programs[2].Identity.Size++
	if _, err := runPlan(plan, nil); !errors.Is(err, job.ErrChanged) {
		t.Errorf("a changed program behind wrappers: %v", err)
	}
}

// TestProcessName: what only root can exchange has its own name in lists of processes; all else is executed from its
// descriptor, and works.
func TestProcessName(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	b := newBench(t)
	b.copyProgram("cat", "own")
	got := b.run(b.plan("cat /proc/self/comm; ./own /proc/self/comm; ./own /proc/self/cmdline"))
	name, rest, _ := strings.Cut(got.out, "\n")
	number, argv, _ := strings.Cut(rest, "\n")
	if name != "cat" || strings.Trim(number, "0123456789") != "" || argv != b.dir+"/own\x00/proc/self/cmdline\x00" {
		t.Errorf("%+v", got)
	}
}

// asNobody runs a test again without rights.
func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "toolward-job-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o777))
	binary, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(dir+"/test", binary, 0o755))
	again := exec.Command(dir+"/test", "-test.run=^"+t.Name()+"$", "-test.v")
	again.Dir, again.Env = dir, []string{"TMPDIR=" + dir, "PATH=/usr/bin:/bin", "HOME=" + dir}
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPlanIsChecked(t *testing.T) {
	b := newBench(t)
	for name, spoil := range map[string]func(*job.Plan){
		"no segments":            func(p *job.Plan) { p.Segments = nil },
		"no directory":           func(p *job.Plan) { p.Dir = job.Directory{} },
		"no program":             func(p *job.Plan) { p.Segments[0].Programs = nil },
		"no identity":            func(p *job.Plan) { p.Segments[0].Programs[0].Identity = job.Identity{} },
		"relative path":          func(p *job.Plan) { p.Segments[0].Programs[0].Path = "cat" },
		"program not first":      func(p *job.Plan) { p.Segments[0].Programs[0].At = 1 },
		"program behind its end": func(p *job.Plan) { p.Segments[0].Programs = append(p.Segments[0].Programs, job.Program{At: 7}) },
		"zero redirection":       func(p *job.Plan) { p.Segments[0].Redirects = []job.Redirect{{}} },
		"unopened redirection":   func(p *job.Plan) { p.Segments[0].Redirects = []job.Redirect{job.Input(0, "x", nil)} },
		"descriptor 3":           func(p *job.Plan) { p.Segments[0].Redirects = []job.Redirect{job.Copy(3, 1)} },
		"NUL":                    func(p *job.Plan) { p.Segments[0].Argv[1] = "a\x00b" },
		"variable":               func(p *job.Plan) { p.Env = []string{"x"} },
		"pipe to nothing":        func(p *job.Plan) { p.Segments[1].Op = job.Pipe },
		"missing operator":       func(p *job.Plan) { p.Segments[0].Op = job.None },
		"unknown operator":       func(p *job.Plan) { p.Segments[0].Op = "&" },
		"no place":               func(p *job.Plan) { p.Segments[1].Dir = "" },
		"cd with a program":      func(p *job.Plan) { p.Segments[0].Chdir = &p.Dir },
	} {
		t.Run(name, func(t *testing.T) {
			plan := b.plan("cat x && cat y")
			spoil(&plan)
			if _, err := job.Start(plan, job.Streams{}); err == nil {
				t.Error("it was started")
			}
		})
	}
}

// TestNothingIsInherited has a descriptor open that lacks the mark.
func TestNothingIsInherited(t *testing.T) {
	b := newBench(t)
	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	for range 5 {
		leak, err := unix.Dup(int(null.Fd()))
		must(t, err)
		defer unix.Close(leak)
	}
	var names []string
	for fd := 3; fd < 300; fd++ {
		names = append(names, fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	text := "readlink " + strings.Join(names, " ")
	for _, text := range []string{text, "echo a | " + text + " | cat", "cat <<EOF | " + text + " 2>&1\nx\nEOF", "nice " + text} {
		if got := b.run(b.plan(text)); got.out != "" {
			t.Errorf("inherited: %s", got.out)
		}
	}
}

// TestDescriptorNumbers starts a program with its descriptor at many numbers: the runtime uses some in the child.
func TestDescriptorNumbers(t *testing.T) {
	b := newBench(t)
	tool := b.copyProgram("echo", "tool")
	identity, err := job.Identify(tool)
	must(t, err)
	plan := job.Plan{Dir: directory(".", b.dir), Env: b.env, Segments: []job.Segment{
		{Dir: b.dir, Programs: []job.Program{{Path: tool, Identity: identity}}, Argv: []string{"", "ran"}},
	}}
	// The streams have high numbers and everything that is opened later gets low ones.
	var low []*os.File
	for range 40 {
		f, err := os.Open(os.DevNull)
		must(t, err)
		low = append(low, f)
	}
	for i := range low {
		read, write, err := os.Pipe()
		must(t, err)
		low[i].Close()
		out := collect(read)
		running, err := job.Start(plan, job.Streams{Out: write, Err: write})
		must(t, err)
		running.Release()
		if got := <-out; got != "ran\n" {
			t.Fatalf("with %d low numbers free: %q, %+v", i+1, got, running.Result())
		}
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

func TestNoDescriptorLeaks(t *testing.T) {
	b := newBench(t)
	b.fixture()
	run := func() {
		for _, text := range []string{
			"cat in | sort | uniq -c > out", "cat < missing | cat", "cd missing", "cd sub && cat f", "cat <<EOF | cat\nx\nEOF", "./denied", "cd sub | cat",
			"false && echo a > never", "nice cat in",
		} {
			b.run(b.plan(text))
		}
		plan := b.plan("cat in > out | cat < in | cat")
		plan.Segments[2].Programs[0].Identity.Inode++
		if _, err := runPlan(plan, nil); !errors.Is(err, job.ErrChanged) {
			t.Fatal(err)
		}
	}
	run()
	before := openDescriptors(t)
	for range 20 {
		run()
	}
	if after := openDescriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	var none unix.Rusage
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, &none); err != syscall.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}
