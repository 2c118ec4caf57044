package allowlist

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
)

func openTest(t *testing.T) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	a := Open(dir, Options{Ledger: gatetest.AsItStands(filepath.Join(dir, FileName))})
	t.Cleanup(a.Close)
	return a
}

func put(t *testing.T, a *Store, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(a.dir, 0o700), os.WriteFile(a.Path(), []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// names lists what is in the directory of the file.
func names(t *testing.T, a *Store) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func allow(t *testing.T, a *Store, agent, pattern string) error {
	t.Helper()
	_, err := a.Update(t.Context(), func(f *File) (bool, error) { return f.Allow(agent, Entry{Pattern: pattern}, 1), nil })
	return err
}

func TestFirstUse(t *testing.T) {
	a := openTest(t)
	if s := a.Current(); s.Exists || s.Corrupt != nil || s.Hash != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Fatalf("%+v", s)
	}
	s, err := a.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.File.Socket.Path != a.dir+"/exec-approvals.sock" || len(s.File.Socket.Token) != 32 {
		t.Errorf("socket %q, token of %d characters", s.File.Socket.Path, len(s.File.Socket.Token))
	}
	again, err := a.Ensure(t.Context())
	if err != nil || again.Hash != s.Hash || a.Current().Hash != s.Hash {
		t.Error("the second use changes the file")
	}
	for path, mode := range map[string]fs.FileMode{a.Path(): 0o600, a.dir: 0o700 | fs.ModeDir} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}

// TestCorruptStays: a file that cannot be read denies, and only a person who has seen it replaces it.
func TestCorruptStays(t *testing.T) {
	a := openTest(t)
	const broken = `{"version":1,"defaults":{"security":"deny"},}`
	put(t, a, broken)
	s := a.Current()
	if m := s.Modes(modes.Settings{Security: modes.SecurityFull, Ask: modes.AskOff}, "main"); s.Corrupt == nil || m != (modes.Modes{Security: modes.SecurityDeny, Ask: modes.AskOnMiss, AskFallback: modes.FallbackDeny}) {
		t.Fatalf("%+v, %v", m, s.Corrupt)
	}
	var corrupt *CorruptError
	if err := allow(t, a, "main", "/x"); !errors.As(err, &corrupt) {
		t.Errorf("got %v", err)
	}
	if s, err := a.Ensure(t.Context()); err != nil || s.Corrupt == nil {
		t.Errorf("%v %v", s, err)
	}
	a.RecordUse(Use{Agent: "main", Pattern: "/x"})
	a.Close()
	if content, _ := os.ReadFile(a.Path()); string(content) != broken {
		t.Fatalf("it was overwritten: %s", content)
	}
	valid := []byte(`{"version":1}`)
	if _, err := a.Set(t.Context(), valid, "", nil); !errors.Is(err, ErrBaseRequired) {
		t.Errorf("got %v", err)
	}
	if s, err := a.Set(t.Context(), valid, s.Hash, nil); err != nil || s.Corrupt != nil {
		t.Errorf("%+v %v", s, err)
	}
}

// TestForeignFiles: links, pipes, and files that others can write are not read.
func TestForeignFiles(t *testing.T) {
	const open = `{"version":1,"agents":{"*":{"allowlist":["*"]}}}`
	for name, arrange := range map[string]func(a *Store) error{
		"a link to a file": func(a *Store) error {
			return errors.Join(os.WriteFile(a.dir+"/other", []byte(open), 0o600), os.Symlink("other", a.Path()))
		},
		"a link to nothing": func(a *Store) error { return os.Symlink("nowhere", a.Path()) },
		"a directory":       func(a *Store) error { return os.Mkdir(a.Path(), 0o700) },
		"others can write": func(a *Store) error {
			return errors.Join(os.WriteFile(a.Path(), []byte(open), 0o600), os.Chmod(a.Path(), 0o602))
		},
		"others can write the directory": func(a *Store) error {
			return errors.Join(os.WriteFile(a.Path(), []byte(open), 0o600), os.Chmod(a.dir, 0o770))
		},
		"the directory is a link": func(a *Store) error {
			return errors.Join(os.WriteFile(a.Path(), []byte(open), 0o600), os.Rename(a.dir, a.dir+"2"), os.Symlink(a.dir+"2", a.dir))
		},
		"the directory is a file": func(a *Store) error { return errors.Join(os.Remove(a.dir), os.WriteFile(a.dir, nil, 0o600)) },
		"too long": func(a *Store) error {
			return os.WriteFile(a.Path(), []byte(open+strings.Repeat(" ", 1<<20)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := openTest(t)
			if err := errors.Join(os.MkdirAll(a.dir, 0o700), arrange(a)); err != nil {
				t.Fatal(err)
			}
			if s := a.Current(); s.Corrupt == nil || len(s.Allowlist("main")) > 0 || s.Modes(modes.Settings{}, "main").Security != modes.SecurityDeny {
				t.Errorf("%+v", s)
			}
			if err := allow(t, a, "main", "/x"); err == nil {
				t.Error("it was changed")
			}
		})
	}
}

// TestOthersEdit: other tools write the file without asking; that is seen at once, even within a tick of the clock.
func TestOthersEdit(t *testing.T) {
	a := openTest(t)
	for i := range 200 {
		pattern := "/p" + strconv.Itoa(100+i)
		put(t, a, `{"version":1,"agents":{"main":{"allowlist":["`+pattern+`"]}}}`)
		if list := a.Current().Allowlist("main"); len(list) != 1 || list[0].Pattern != pattern {
			t.Fatalf("%d: %+v", i, list)
		}
	}
}

// TestForeignWriteIsNotLost: a tool that does not know the lock writes between our reading and our writing.
func TestForeignWriteIsNotLost(t *testing.T) {
	a := openTest(t)
	put(t, a, `{"version":1}`)
	calls := 0
	s, err := a.Update(t.Context(), func(f *File) (bool, error) {
		if calls++; calls == 1 {
			put(t, a, `{"version":1,"defaults":{"security":"deny"}}`)
		}
		return f.Allow("main", Entry{Pattern: "/x"}, 1), nil
	})
	if err != nil || calls != 2 || s.File.Defaults.Security != modes.SecurityDeny || len(s.Allowlist("main")) != 1 {
		t.Errorf("%d calls, %+v, %v", calls, s, err)
	}
	base := s.Hash
	put(t, a, `{"version":1,"defaults":{"security":"deny"},"agents":{}}`)
	if _, err := a.Set(t.Context(), []byte(`{"version":1}`), base, nil); !errors.Is(err, ErrBaseChanged) {
		t.Errorf("got %v", err)
	}
	if a.Current().File.Defaults.Security != modes.SecurityDeny {
		t.Error("a denial was lost")
	}
}

func TestSetKeepsSocket(t *testing.T) {
	a := openTest(t)
	first, err := a.Ensure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.Set(t.Context(), []byte(`{"version":1,"socket":{"path":"/elsewhere"},"defaults":{"ask":"always"}}`), " "+first.Hash+"\n", nil)
	if err != nil || second.File.Socket.Token != first.File.Socket.Token || second.File.Socket.Path != "/elsewhere" {
		t.Errorf("%+v %v", second, err)
	}
	var invalid *InvalidContent
	if _, err := a.Set(t.Context(), []byte(`{"version":1,"socket":{"token":"x"}}`), second.Hash, nil); !errors.As(err, &invalid) {
		t.Errorf("a weaker token: %v", err)
	}
	if _, err := a.Set(t.Context(), []byte(`{"version":1,"unknown":1}`), second.Hash, nil); !errors.As(err, &invalid) {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestRecordUse(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := Open(dir, Options{Ledger: gatetest.AsItStands(filepath.Join(dir, FileName))})
		put(t, a, `{"version":1,"agents":{"*":{"allowlist":["/s"]},"main":{"allowlist":["/s","/a",{"pattern":"/a","argv":["/a","x"]}]}}}`)
		writes, last := 0, a.Current().Hash
		for i := range 40 { // for two seconds
			a.RecordUse(
				Use{Agent: "*", Pattern: "/s", Command: "s --token ghp_" + strings.Repeat("a1B2", 9) + " " + strconv.Itoa(i), ResolvedPath: "/bin/s", At: time.Now()},
				Use{Agent: "main", Pattern: "/a", Argv: []string{"/a", "x"}, Command: strings.Repeat("ä", 3000), At: time.Now()},
			)
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			if hash := a.Current().Hash; hash != last {
				writes, last = writes+1, hash
			}
		}
		a.Close()
		if writes < 2 || writes > 3 {
			t.Errorf("%d writes in two seconds", writes)
		}
		s := a.Current()
		everyone, own := s.File.Agents["*"].Allowlist[0], s.File.Agents["main"].Allowlist
		if everyone.LastUsedAt == 0 || everyone.LastResolvedPath != "/bin/s" || strings.Contains(everyone.LastUsedCommand, "a1B2a1B2") || !strings.HasSuffix(everyone.LastUsedCommand, " 39") {
			t.Errorf("%+v", everyone)
		}
		if own[0].LastUsedAt != 0 || own[1].LastUsedAt != 0 {
			t.Errorf("entries that were not used: %+v", own)
		}
		if n := len([]rune(own[2].LastUsedCommand)); n != 2000 {
			t.Errorf("%d characters are kept", n)
		}
	})
}

// TestWriterProcess is no test: it is the other process of the tests below. It allows patterns until it is ended, and
// prints each one that is safely written.
func TestWriterProcess(t *testing.T) {
	dir := os.Getenv("EXECPOLICY_WRITER")
	if dir == "" {
		return
	}
	count, err := strconv.Atoi(os.Getenv("EXECPOLICY_COUNT"))
	if err != nil {
		t.Fatal(err)
	}
	a := Open(dir, Options{Ledger: gatetest.AsItStands(filepath.Join(dir, FileName))})
	for i := range count {
		pattern := fmt.Sprintf("/%d/%d", os.Getpid(), i)
		if err := allow(t, a, "main", pattern); err != nil {
			t.Fatal(err)
		}
		fmt.Println("wrote", pattern)
	}
}

func writer(t *testing.T, dir string, count int) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(self, "-test.run", "^TestWriterProcess$")
	cmd.Env = append(os.Environ(), "EXECPOLICY_WRITER="+dir, "EXECPOLICY_COUNT="+strconv.Itoa(count))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// wrote lists the patterns that a writer says are safe.
func wrote(out string) (patterns []string) {
	for line := range strings.Lines(out) {
		if pattern, ok := strings.CutPrefix(line, "wrote "); ok && strings.HasSuffix(line, "\n") {
			patterns = append(patterns, strings.TrimSpace(pattern))
		}
	}
	return patterns
}

func patterns(s *Snapshot) (all []string) {
	for _, e := range s.Allowlist("main") {
		all = append(all, e.Pattern)
	}
	return all
}

func TestConcurrentWriters(t *testing.T) {
	a := openTest(t)
	first, firstOut := writer(t, a.dir, 40)
	second, secondOut := writer(t, a.dir, 40)
	var here sync.WaitGroup
	for w := range 4 {
		here.Go(func() {
			for i := range 10 {
				if err := allow(t, a, "main", fmt.Sprintf("/here/%d/%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	here.Wait()
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Fatalf("%v\n%s\n%s", err, firstOut, secondOut)
	}
	if got := patterns(a.Current()); len(got) != 120 {
		t.Errorf("%d of 120 entries are there", len(got))
	}
}

// TestKilledWriter ends a writer at any moment: the file is whole, and has all that the writer called safe.
func TestKilledWriter(t *testing.T) {
	a := openTest(t)
	for round := range 25 {
		cmd, out := writer(t, a.dir, 1_000_000)
		time.Sleep(time.Duration(20+round*7) * time.Millisecond) // real processes have no other clock
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s := a.Current()
		if s.Corrupt != nil {
			t.Fatal(s.Corrupt)
		}
		have := patterns(s)
		for _, pattern := range wrote(out.String()) {
			if !slices.Contains(have, pattern) {
				t.Fatalf("round %d: %s is lost", round, pattern)
			}
		}
	}
	if err := allow(t, a, "main", "/after"); err != nil {
		t.Fatal(err)
	}
	if got := names(t, a); !slices.Equal(got, []string{"exec-approvals.json", "exec-approvals.lock"}) {
		t.Errorf("left over: %q", got)
	}
}

func TestLockedByAnother(t *testing.T) {
	a := openTest(t)
	put(t, a, `{"version":1}`)
	d, err := openStateDir(a.dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := d.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Update(ctx, func(*File) (bool, error) { t.Error("changed without the lock"); return true, nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestSnapshotIsNotShared(t *testing.T) {
	a := openTest(t)
	put(t, a, `{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","effects":["read"]}]}}}`)
	before := a.Current()
	_, err := a.Update(t.Context(), func(f *File) (bool, error) {
		f.Agents["main"].Allowlist[0].Effects[0] = "write"
		return false, errors.New("no")
	})
	if err == nil || before.File.Agents["main"].Allowlist[0].Effects[0] != "read" {
		t.Error("a change that failed shows")
	}
	if raw, _ := json.Marshal(a.Current().File); !strings.Contains(string(raw), `"read"`) {
		t.Errorf("%s", raw)
	}
}
