package identity

import (
	"errors"
	"os"
	"testing"
	"time"
)

func TestInteractiveShell(t *testing.T) {
	for _, tt := range []struct {
		exe  string
		args []string
		tty  uint64
		want bool
	}{
		{"/usr/bin/bash", []string{"-bash"}, 1, true},
		{"/usr/bin/bash", []string{"bash"}, 1, true},
		{"/usr/bin/bash (deleted)", []string{"bash"}, 1, true},
		{"/usr/bin/bash", []string{"bash", "--rcfile", "x", "-i"}, 1, true},
		{"/usr/bin/bash", []string{"bash", "--init-file", "x"}, 1, true},
		{"/bin/zsh", []string{"zsh", "-il"}, 1, true},
		{"/bin/busybox", []string{"busybox", "sh"}, 1, true},
		{"/bin/busybox", []string{"sh"}, 1, true},
		{"/usr/bin/bash", []string{"bash"}, 0, false},
		{"/usr/bin/bash", []string{"bash", "-c", "x"}, 1, false},
		{"/usr/bin/bash", []string{"bash", "-lc", "x"}, 1, false},
		{"/usr/bin/bash", []string{"bash", "-ic", "x"}, 1, false},
		{"/usr/bin/bash", []string{"bash", "script.sh"}, 1, false},
		{"/usr/bin/bash", []string{"bash", "-x", "script.sh"}, 1, false},
		{"/usr/bin/bash", []string{"bash", "-"}, 1, false},
		{"/usr/bin/fish", []string{"fish", "--command=x"}, 1, false},
		{"/usr/bin/node", []string{"bash"}, 1, false},
		{"", nil, 1, false},
	} {
		if got := (Process{Exe: tt.exe, Args: tt.args, TTY: tt.tty}).isInteractiveShell(); got != tt.want {
			t.Errorf("%s %q on terminal %d: %v", tt.exe, tt.args, tt.tty, got)
		}
	}
}

func TestThisProcess(t *testing.T) {
	me, err := System().Process(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exe, _ := os.Executable()
	if me.PID != os.Getpid() || me.Parent != os.Getppid() || me.UID != uint32(os.Geteuid()) || me.Start == 0 || me.Exe != exe || len(me.Args) == 0 {
		t.Errorf("%+v", me)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := System().Process(pid); err == nil {
			t.Errorf("process %d exists", pid)
		}
	}
	if (Process{}).Is(Process{}) {
		t.Error("no process is the same as no process")
	}
}

// fakeProcesses is a made-up tree of processes.
type fakeProcesses map[int]Process

func (f fakeProcesses) Process(pid int) (Process, error) {
	p, ok := f[pid]
	if !ok {
		return Process{}, errors.New("no such process")
	}
	return p, nil
}

func TestStarterDistrustsYoungParents(t *testing.T) {
	child := Process{PID: 30, Parent: 20, Start: 100}
	for name, tt := range map[string]struct {
		parent Process
		ok     bool
	}{
		"older":                    {Process{PID: 20, Parent: 1, Start: 99}, true},
		"same tick":                {Process{PID: 20, Parent: 1, Start: 100}, true},
		"younger: a reused number": {Process{PID: 20, Parent: 1, Start: 101}, false},
		"unknown start":            {Process{PID: 20, Parent: 1}, false},
	} {
		if _, err := starter(fakeProcesses{20: tt.parent, 30: child}, child); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	orphan := Process{PID: 30, Parent: 1, Start: 100}
	if _, err := starter(fakeProcesses{30: orphan}, orphan); !errors.Is(err, errOrphan) {
		t.Errorf("orphan: %v", err)
	}
}

func TestRegisterAgentStopsAtAPerson(t *testing.T) {
	bash := func(pid, parent int, args ...string) Process {
		return Process{PID: pid, Parent: parent, Start: uint64(pid), TTY: 1, Exe: "/bin/bash", Args: append([]string{"bash"}, args...)}
	}
	program := func(pid, parent int, exe string) Process {
		return Process{PID: pid, Parent: parent, Start: uint64(pid), TTY: 1, Exe: exe, Args: []string{exe}}
	}
	tests := map[string]struct {
		chain []Process // from the shell down to the hook
		want  []int
	}{
		"agent in a shell":         {[]Process{bash(10, 1), program(20, 10, "claude"), program(30, 20, "hook")}, []int{20}},
		"agent with a shell":       {[]Process{bash(10, 1), program(20, 10, "claude"), bash(25, 20, "-c", "hook"), program(30, 25, "hook")}, []int{20, 25}},
		"by hand":                  {[]Process{bash(10, 1), program(30, 10, "hook")}, nil},
		"by hand, in a command":    {[]Process{bash(10, 1), bash(25, 10, "-c", "hook"), program(30, 25, "hook")}, []int{25}},
		"agent of the desktop":     {[]Process{program(10, 1, "systemd"), program(20, 10, "desktop"), program(30, 20, "hook")}, []int{20}},
		"started by init directly": {[]Process{program(30, 1, "hook")}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fakeProcesses{}
			for _, p := range tt.chain {
				tree[p.PID] = p
			}
			k := open(t, newMemory(), func(o *Options) { o.Processes = tree })
			if err := k.RegisterAgent(tt.chain[len(tt.chain)-1]); err != nil {
				t.Fatal(err)
			}
			for _, p := range tt.chain {
				want := false
				for _, pid := range tt.want {
					want = want || pid == p.PID
				}
				if got := k.agents.has(p); got != want {
					t.Errorf("process %d (%s) is an agent: %v", p.PID, p.Exe, got)
				}
			}
		})
	}
}

func TestAgentsAreBounded(t *testing.T) {
	var a agents
	alive := fakeProcesses{}
	for pid := 2; pid < 3*maxAgents; pid++ {
		p := Process{PID: pid, Start: 1}
		if pid%100 == 0 {
			alive[pid] = p
		}
		a.add(alive, p)
	}
	if len(a.known) > maxAgents {
		t.Errorf("%d agents remembered", len(a.known))
	}
	for _, p := range alive {
		if !a.has(p) {
			t.Fatalf("living agent %d was forgotten", p.PID)
		}
	}
}

// An agent that fills the list with living processes gains nothing: the next one is turned away and hidden nowhere, and people
// answer from every other terminal.
func TestAFullListHidesNoAgent(t *testing.T) {
	alive := fakeProcesses{}
	k := open(t, newMemory(), func(o *Options) { o.Processes = alive })
	for pid := 2; pid < maxAgents+2; pid++ {
		alive[pid] = Process{PID: pid, Start: 1, TTY: 7}
		k.agents.add(alive, alive[pid])
	}
	late := Process{PID: 10001, Parent: 10000, Start: 2, TTY: 8, Exe: "/bin/hook"}
	alive[10000], alive[10001] = Process{PID: 10000, Parent: 9999, Start: 1, TTY: 8, Exe: "/bin/agent"}, late
	if err := k.RegisterAgent(late); err == nil {
		t.Error("an agent that is not noted may go on")
	}
	if !k.descendsFromAgent(late) || !k.descendsFromAgent(alive[10000]) {
		t.Error("an agent that did not fit passes for none")
	}
	person := Process{PID: 20001, Parent: 1, Start: 1, TTY: 9, Exe: "/bin/toolward"}
	alive[20001] = person
	if k.descendsFromAgent(person) {
		t.Error("a person in another terminal cannot answer")
	}
	if err := k.RegisterAgent(Process{PID: 30, Parent: 2, Start: 1, TTY: 7}); err != nil {
		t.Errorf("an agent that is known: %v", err)
	}
	for pid := 2; pid < 100; pid++ {
		delete(alive, pid)
	}
	if err := k.RegisterAgent(late); err != nil || !k.descendsFromAgent(late) {
		t.Errorf("there is room again: %v", err)
	}
	if k.descendsFromAgent(Process{PID: 40, Parent: 1, Start: 5, TTY: 8}) {
		t.Error("there is room again, but a stranger counts as an agent")
	}
}

func BenchmarkSignIn(b *testing.B) {
	v, err := newVerifier(owner, passphrase, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if ok, err := v.matches(passphrase); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
