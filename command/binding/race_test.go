package binding

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// swaps exchange what a command starts from, between the approval and the look just before the start, and put it back.
func (s *site) swaps() map[string][2]func() error {
	rename := func(from, to string) error { return os.Rename(s.at(from), s.at(to)) }
	link := func(target string) func() error {
		return func() error {
			return errors.Join(os.Symlink(target, s.at("bin/new")), rename("bin/new", "bin/tool"))
		}
	}
	content := func(name, text string) func() error {
		return func() error { return os.WriteFile(s.at(name), []byte(text), 0o755) }
	}
	atomically := func(name, text string) func() error {
		return func() error {
			return errors.Join(os.WriteFile(s.at("new"), []byte(text), 0o755), rename("new", name))
		}
	}
	inPlaceOf := func() error { return errors.Join(rename("ws", "kept"), rename("evil", "ws")) }
	return map[string][2]func() error{
		"program in place":  {content("bin/tool-1", "#!/bin/sh\necho 1ne\n"), content("bin/tool-1", "#!/bin/sh\necho one\n")},
		"program exchanged": {atomically("bin/tool-1", "#!/bin/sh\necho 1ne\n"), atomically("bin/tool-1", "#!/bin/sh\necho one\n")},
		"symlink":           {link("tool-2"), link("tool-1")},
		"script in place":   {content("ws/run.py", "print(9)\n"), content("ws/run.py", "print(1)\n")},
		"script exchanged":  {atomically("ws/run.py", "print(9)\n"), atomically("ws/run.py", "print(1)\n")},
		"working directory": {inPlaceOf, func() error { return errors.Join(rename("ws", "evil"), rename("kept", "ws")) }},
		"script behind a link": {func() error {
			return errors.Join(rename("ws/run.py", "kept.py"), os.Symlink("../other.py", s.at("ws/run.py")))
		}, func() error { return rename("kept.py", "ws/run.py") }},
		"directory behind a link": {
			func() error { return errors.Join(rename("ws", "kept"), os.Symlink("evil", s.at("ws"))) },
			func() error { return errors.Join(os.Remove(s.at("ws")), rename("kept", "ws")) },
		},
		"directory made anew": {
			func() error {
				return errors.Join(os.RemoveAll(s.at("ws")), os.Mkdir(s.at("ws"), 0o755), os.WriteFile(s.at("ws/run.py"), []byte("print(1)\n"), 0o755))
			},
			func() error { return nil },
		},
		"script gone": {func() error { return os.Remove(s.at("ws/run.py")) }, content("ws/run.py", "print(1)\n")},
	}
}

// TestSwapsNeverPass exchanges the program, a link, the working directory and a bound script 10,000 times between the
// approval and the re-check.
func TestSwapsNeverPass(t *testing.T) {
	s := newSite(t)
	s.do(os.Mkdir(s.at("evil"), 0o755))
	s.write("evil/run.py", "print(1)\n") // the same content, in another directory
	total := 10_000
	if testing.Short() {
		total = 500
	}
	all := s.swaps()
	names := []string{}
	for name := range all {
		names = append(names, name)
	}
	for i := range total {
		name := names[i%len(names)]
		approved, err := s.bind()
		s.do(err)
		s.do(all[name][0]())
		if now, err := s.bind(); err == nil && approved.Check(now) == nil {
			t.Fatalf("%d: after the swap %q it passes", i, name)
		}
		s.do(all[name][1]())
	}
	approved, err := s.bind()
	s.do(err)
	if now, err := s.bind(); err != nil || approved.Check(now) != nil {
		t.Errorf("what did not change does not pass: %v", err)
	}
}

// TestRaceWithSwaps swaps while the re-check is at work. What passes is started from descriptors that were verified: they
// hold what was approved, and never anything else.
func TestRaceWithSwaps(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("what a directory's descriptor holds can only be seen with /proc")
	}
	s := newSite(t)
	s.do(os.Mkdir(s.at("evil"), 0o755))
	s.write("evil/run.py", "print(1)\n")
	s.write("ws/marker", "ws")
	s.write("evil/marker", "evil")
	approved, err := s.bind()
	s.do(err)
	const good = "#!/bin/sh\necho one\n"
	var stop atomic.Bool
	var swapping sync.WaitGroup
	swapping.Go(func() {
		all := s.swaps()
		for i := 0; !stop.Load(); i++ {
			for _, name := range []string{"program exchanged", "symlink", "working directory"} {
				_, _ = all[name][0](), all[name][1]()
			}
		}
	})
	passed, refused := 0, 0
	for range 4000 {
		started, err := s.start(approved)
		switch {
		case err != nil:
			refused++
		case started != good+"ws":
			t.Fatalf("this would have run: %s", started)
		default:
			passed++
		}
	}
	stop.Store(true)
	swapping.Wait()
	t.Logf("%d passed unchanged, %d were refused", passed, refused)
	if refused == 0 {
		t.Error("no swap was seen: nothing is proven")
	}
}

// start is what an executor does: it looks again, opens, verifies what it has opened, and starts from that.
func (s *site) start(approved *Binding) (string, error) {
	now, err := s.bind()
	if err != nil {
		return "", err
	}
	if err := approved.Check(now); err != nil {
		return "", err
	}
	program, err := os.Open(approved.Commands[0].Executable.RealPath)
	if err != nil {
		return "", err
	}
	defer program.Close()
	dir, err := os.Open(approved.Dir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := errors.Join(approved.Commands[0].Executable.Verify(program), approved.VerifyDir(dir)); err != nil {
		return "", err
	}
	content := make([]byte, 100)
	n, err := program.Read(content)
	if err != nil {
		return "", err
	}
	marker, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/marker", dir.Fd())) // through the descriptor, wherever it was moved
	if err != nil {
		return "", err
	}
	return string(content[:n]) + string(marker), nil
}
