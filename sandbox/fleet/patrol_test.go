package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// What a command makes is told with its session, once, and what makes it meanwhile at the end.
func TestCommandsAreLookedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manage(t, newHome(t), newFake("native"), settings.Config{Scope: "agent", WorkspaceAccess: "rw"})
		told := func() []Event {
			m.events.mu.Lock()
			defer m.events.mu.Unlock()
			return slices.DeleteFunc(slices.Clone(m.events.list), func(e Event) bool { return e.Kind != EventProtected })
		}
		made := func(name string) { makeFile(t, m.home.Workspace, name) }
		command := func(session, name string) {
			lease := m.lease(t, session)
			if _, err := lease.Start(t.Context(), sandbox.Command{Shell: "true"}); err != nil {
				t.Fatal(err)
			}
			if name != "" {
				made(name)
			}
			lease.Release()
			time.Sleep(time.Hour) // of the bubble
			synctest.Wait()       // a look that began in the same instant
		}
		command("a", "src/main.go")
		command("a", "sub/.git/hooks/post-merge")
		if got := told(); len(got) != 1 || !got[0].Runs || got[0].Session != "agent:coder:a" || !slices.Equal(got[0].Paths, []string{m.home.Workspace + "/sub/.git/hooks"}) {
			t.Fatalf("%+v", got)
		}
		made(".envrc") // a file tool would be refused: a program may have, that has left its command
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := told(); len(got) != 2 || got[1].Runs {
			t.Fatalf("%+v", got)
		}
		for i := range maxTold + 3 {
			made(fmt.Sprint("many/", i, "/.vscode/x"))
		}
		if err := m.Stop(t.Context(), m.lease(t, "b").Layout.Name, "test"); err != nil {
			t.Fatal(err)
		}
		got := told()
		if last := got[len(got)-1]; len(got) != 3 || last.Runs || len(last.Paths) != maxTold || !strings.Contains(last.Why, "3 more are not named") {
			t.Fatalf("%+v", got)
		}
		// What was there when it started again is what is read-only now.
		command("b", "")
		if got := told(); len(got) != 3 {
			t.Errorf("%+v", got)
		}
	})
}

// What git would run has another name before anybody hears that the command has ended.
func TestResultsWaitForQuarantine(t *testing.T) {
	m := manage(t, newHome(t), newFake("native"), settings.Config{WorkspaceAccess: "rw"})
	lease := m.lease(t, "a")
	defer lease.Release()
	lease.Handle = endsWith{lease.Handle, func() { makeFile(t, m.home.Workspace, "sub/.git/commondir") }}
	p, err := lease.Start(t.Context(), sandbox.Command{Shell: "true"})
	if err != nil {
		t.Fatal(err)
	}
	status, err := p.Wait(t.Context())
	if err != nil || !strings.Contains(status.Warning, "sub/.git/commondir (it is now commondir.quarantined-") {
		t.Errorf("%+v %v", status, err)
	}
	if _, err := os.Lstat(filepath.Join(m.home.Workspace, "sub/.git/commondir")); !os.IsNotExist(err) {
		t.Error("it is there")
	}
}

// endsWith is a sandbox whose commands do something at their end.
type endsWith struct {
	sandbox.Handle
	do func()
}

func (e endsWith) Start(context.Context, sandbox.Command) (sandbox.Process, error) {
	return endingProcess{do: e.do}, nil
}

type endingProcess struct {
	sandbox.Process
	do func()
}

func (p endingProcess) Wait(context.Context) (sandbox.ExitStatus, error) {
	p.do()
	return sandbox.ExitStatus{}, nil
}

// A command that still runs is looked after, too.
func TestLongCommandsAreLookedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := manage(t, newHome(t), newFake("native"), settings.Config{WorkspaceAccess: "rw"})
		lease := m.lease(t, "a")
		defer lease.Release()
		makeFile(t, m.home.Workspace, ".mcp.json")
		time.Sleep(time.Hour)
		synctest.Wait()
		if kinds := m.events.kinds(); !slices.Equal(kinds, []EventKind{EventCreated, EventProtected}) {
			t.Errorf("%v", kinds)
		}
	})
}

// makeFile makes a file in a directory, and the directories above it.
func makeFile(t *testing.T, dir, name string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}
