package light_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/toolward/toolward/job"
)

// Parts of a job work together as they do without a confinement: pipes, conditions, processes that one part leaves for the next.
func TestPartsOfAJob(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct {
		words []string
		want  string
		code  int
	}{
		{[]string{"printf", "b\\na\\n", "|", "sort", "|", "head", "-n1"}, "a\n", 0},
		{[]string{"false", "&&", "echo", "no"}, "", 1},
		{[]string{"true", "&&", "echo", "yes"}, "yes\n", 0},
		{[]string{"false", ";", "echo", "yes"}, "yes\n", 0},
		{[]string{"sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $! > pid", "&&", "sh", "-c", "kill -0 $(cat pid) && kill $(cat pid) && echo ended"}, "ended\n", 0},
		{[]string{"sh", "-c", "yes | head -n1"}, "y\n", 0},
	} {
		if out, result := m.run(t, c.words...); out != c.want || result.Code != c.code || result.Err != nil {
			t.Errorf("%q: %q %+v, want %q", c.words, out, result, c.want)
		}
	}
	many := make([]string, 2000)
	for i := range many {
		many[i] = strings.Repeat("x", 100)
	}
	if out, result := m.run(t, append([]string{"echo"}, many...)...); len(out) != 2000*101 || result.Code != 0 {
		t.Errorf("a long command: %d bytes, %+v", len(out), result)
	}
}

// A part that is about keys has them, and the others of the same command have not.
func TestEveryPartHasWhatItIsAbout(t *testing.T) {
	m := newMachine(t)
	plan, scene := m.plan(t, "sh", "-c", "cat ~/.ssh/id_rsa; echo x > ~/.ssh/new; echo x >> .git/config", ";", "sh", "-c", "cat ~/.ssh/id_rsa; echo .")
	scene.Calls[0][0].Program, scene.Calls[0][0].Args, scene.Calls[0][0].Network = "/usr/bin/git", []string{"push"}, true
	if err := m.light.Confine(&plan, scene); err != nil {
		t.Fatal(err)
	}
	out, _ := runPlan(t, plan)
	if strings.Count(out, "ssh key") != 1 {
		t.Errorf("printed %q", out)
	}
	if _, err := os.Stat(m.home + "/.ssh/new"); err == nil {
		t.Error("a key was added")
	}
	if got := m.content(t, "src/proj/.git/config"); got != "[core]\nx\n" {
		t.Errorf("git's own settings: %q", got)
	}
	plan, scene = m.plan(t, "cat", m.home+"/.netrc")
	scene.Named = []string{m.home + "/.netrc"}
	if err := m.light.Confine(&plan, scene); err != nil {
		t.Fatal(err)
	}
	if out, _ := runPlan(t, plan); out != "netrc" {
		t.Errorf("a file that the command names: %q", out)
	}
}

// Stop asks, and what does not listen is killed; nothing is left behind, not even what left its session.
func TestStop(t *testing.T) {
	m := newMachine(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		plan, scene := m.plan(t, "sh", "-c", "setsid sleep 1000 & echo started; exec sleep 1000")
		if err := m.light.Confine(&plan, scene); err != nil {
			t.Fatal(err)
		}
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		running, err := job.Start(plan, job.Streams{Out: write, Err: write})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(read, make([]byte, len("started\n"))); err != nil {
			t.Fatal(err)
		}
		if pid := running.Process(); pid < 2 || syscall.Kill(pid, 0) != nil {
			t.Errorf("process %d is none of this machine", pid)
		}
		running.Stop(signal)
		<-running.Done()
		running.Release()
		if r := running.Result(); r.Signal != signal {
			t.Errorf("%v: %+v", signal, r)
		}
		if rest, err := io.ReadAll(read); err != nil || len(rest) > 0 { // it ends when nobody has the pipe any more
			t.Errorf("%q, %v", rest, err)
		}
	}
}

// A program on a terminal has it as its own: it leads a session, and Ctrl-C reaches it.
func TestOnATerminal(t *testing.T) {
	m := newMachine(t)
	plan, scene := m.plan(t, "sh", "-c", "tty; ps -o pid=,sid= -p $$; trap 'echo caught; exit 3' INT; echo ready; sleep 1000 & wait")
	if err := m.light.Confine(&plan, scene); err != nil {
		t.Fatal(err)
	}
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	running, err := job.Start(plan, job.Streams{In: theirs, Out: theirs, Err: theirs, Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	buffer := make([]byte, 1024)
	for !strings.Contains(out.String(), "ready") {
		n, err := ours.Read(buffer)
		if err != nil {
			t.Fatalf("%q: %v", out.String(), err)
		}
		out.Write(buffer[:n])
	}
	if _, err := ours.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	<-running.Done()
	if r := running.Result(); r.Code != 3 {
		t.Errorf("%+v: %q", r, out.String())
	}
	running.Release()
	if !strings.Contains(out.String(), "/dev/pts/") {
		t.Errorf("%q", out.String())
	}
	if lines := strings.Fields(out.String()); len(lines) > 2 && lines[1] != lines[2] {
		t.Errorf("it leads no session: %q", out.String())
	}
}

// What cannot start says so as it does without a confinement.
func TestWhatDoesNotStart(t *testing.T) {
	m := newMachine(t)
	for content, code := range map[string]int{"\x7fELFgarbage that is longer than a header": 126, "#!/no/such/interpreter\n": 127} {
		file := m.ws + "/program"
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		identity, err := job.Identify(file)
		if err != nil {
			t.Fatal(err)
		}
		plan, scene := m.plan(t, "true")
		plan.Segments[0].Programs, plan.Segments[0].Argv = []job.Program{{Path: file, Identity: identity}}, []string{file}
		if err := m.light.Confine(&plan, scene); err != nil {
			t.Fatal(err)
		}
		if _, result := runPlan(t, plan); result.Code != code {
			t.Errorf("%q: %+v, want %d", content, result, code)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// The everyday tools of developers work, and what they make is the user's.
func TestDevelopersTools(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	m := newMachine(t)
	if err := os.RemoveAll(m.ws + "/.git"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module x\n", "main.go": "package main\nfunc main() { println(\"built\") }\n", "Makefile": "all:\n\techo made > made.txt\n",
		"package.json": `{"name":"x","scripts":{"test":"node -e \"require('fs').writeFileSync('tested','')\""}}`,
	} {
		if err := os.WriteFile(m.ws+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ needs, command, makes string }{
		{"git", "git init -q && git config user.name a && git config user.email a@b.c && git add -A && git commit -qm x", ".git/refs/heads"},
		{"git", "echo y > y && git add y && git commit -qm y && git checkout -qb other && git rebase -q HEAD~1 && git stash list", "y"},
		{"make", "make", "made.txt"},
		{"go", "GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o program . && ./program", "program"},
		{"npm", "npm test --silent", "tested"},
	} {
		if _, err := exec.LookPath(c.needs); err != nil {
			t.Logf("there is no %s here", c.needs)
			continue
		}
		plan, scene := m.plan(t, "sh", "-c", c.command)
		plan.Env = append(plan.Env, "PATH="+os.Getenv("PATH"))[1:]
		scene.Calls[0][0].Program = "/usr/bin/" + c.needs // it is about this program
		if err := m.light.Confine(&plan, scene); err != nil {
			t.Fatal(err)
		}
		out, result := runPlan(t, plan)
		if result.Code != 0 {
			t.Errorf("%s: %s%+v", c.command, out, result)
			continue
		}
		info, err := os.Stat(m.ws + "/" + c.makes)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
			t.Errorf("%s: %v, %v", c.makes, info, err)
		}
	}
}

// Many commands at once get a confinement each.
func TestManyAtOnce(t *testing.T) {
	m := newMachine(t)
	results := make(chan error)
	for i := range 20 {
		go func() {
			plan, scene := m.plan(t, "sh", "-c", "test ! -e ~/.ssh/id_rsa && exit "+strconv.Itoa(i))
			err := m.light.Confine(&plan, scene)
			if err == nil {
				var running *job.Job
				if running, err = job.Start(plan, job.Streams{}); err == nil {
					<-running.Done()
					if running.Result().Code != i {
						err = errors.New(strconv.Itoa(running.Result().Code))
					}
					running.Release()
				}
			}
			results <- err
		}()
	}
	for range 20 {
		select {
		case err := <-results:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it hangs")
		}
	}
}
