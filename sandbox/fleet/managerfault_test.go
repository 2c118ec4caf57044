package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox"
)

// What a gateway was writing when it was killed is gone after the next start.
func TestStartRemovesWhatWasHalfWritten(t *testing.T) {
	w := newHome(t)
	dir := filepath.Join(w.State, "sandbox")
	if err := os.MkdirAll(filepath.Join(dir, "locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"containers.json.123.tmp": `{"entr`, "machine.json.456.tmp": "", "containers.json.lock": "", "containers.json": `{"entries": []}`,
		"locks/toolward-sbx-a.lock": `{"pid": 1, "createdAt": "2026-01-01T00:00:00Z", "held": true}`, "locks/toolward-sbx-b.lock": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := newFake("native")
	m := manage(t, w, e, settings.Config{})
	var left []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, strings.TrimPrefix(p, dir+"/"))
		}
		return err
	})
	if err != nil || !slices.Equal(left, []string{"containers.json"}) {
		t.Errorf("there are %v, %v", left, err)
	}
	if e.swept != 1 {
		t.Errorf("the engine was asked %d times to remove what was left", e.swept)
	}
	m.lease(t, "s").Release()
}

// One engine that does not answer keeps its own entries, and no other's.
func TestStartWhileAnEngineIsAway(t *testing.T) {
	w := newHome(t)
	native, docker := newFake("native"), newFake("docker")
	docker.listErr = errors.New("it does not answer")
	registry := NewRegistry(filepath.Join(w.State, "sandbox", "containers.json"))
	for _, engine := range []string{"native", "docker"} {
		if err := registry.Update(add(Registered{Name: "of-" + engine, ScopeKey: "agent:coder", Engine: engine})); err != nil {
			t.Fatal(err)
		}
	}
	m := NewManager(ManagerOptions{Engines: []sandbox.Engine{native, docker}, StateDir: w.State, Settings: w.settings(t, settings.Config{})})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	infos, err := m.List(t.Context())
	if len(infos) != 1 || infos[0].Name != "of-docker" || infos[0].Missing || err == nil {
		t.Errorf("%+v, %v", infos, err)
	}
}

// A sandbox that cannot be written down is refused and removed: nobody would find it again.
func TestSandboxThatCannotBeWrittenDown(t *testing.T) {
	w := newHome(t)
	e := newFake("native")
	m := manage(t, w, e, settings.Config{})
	dir := filepath.Join(w.State, "sandbox")
	e.made = func() { diskIsGone(t, dir) }
	_, err := m.Acquire(t.Context(), m.request("s"))
	if sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	if left := e.names(); len(left) != 0 {
		t.Errorf("left running: %v", left)
	}
	e.made = nil
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	m.lease(t, "s").Release()
}

// The same with one that was there and stopped: it is stopped again, and kept.
func TestSandboxThatWasStoppedCannotBeWrittenDown(t *testing.T) {
	w := newHome(t)
	e := newFake("native")
	m := manage(t, w, e, settings.Config{})
	lease := m.lease(t, "s")
	lease.Release()
	if err := m.Stop(t.Context(), lease.Layout.Name, "test"); err != nil {
		t.Fatal(err)
	}
	e.ending = true
	e.made = func() { diskIsGone(t, filepath.Dir(m.registry.path)) }
	if _, err := m.Acquire(t.Context(), m.request("s")); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("%v", err)
	}
	if state, err := e.Lookup(t.Context(), lease.Layout.Name); err != nil || state.Running {
		t.Errorf("it is %+v, %v", state, err)
	}
}

// diskIsGone puts a file where the registry's directory was. The manager may be writing there at that moment, and make the
// directory again.
func diskIsGone(t *testing.T, dir string) {
	t.Helper()
	var err error
	for i := range 100 {
		if err = os.Rename(dir, dir+".gone"+strconv.Itoa(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		var file *os.File
		if file, err = os.OpenFile(dir, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = file.Close()
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// The call after the one in which nobody inside answered has a sandbox that works, also while the old one is still ending.
func TestSandboxThatDoesNotAnswer(t *testing.T) {
	e := newFake("native")
	m := manage(t, newHome(t), e, settings.Config{})
	first := m.lease(t, "s")
	first.Release()
	e.boxes[first.Layout.Name].deaf.Store(true)
	e.made = func() { e.boxes[first.Layout.Name].deaf.Store(false) }
	again := m.lease(t, "s")
	defer again.Release()
	if !again.Runs() {
		t.Error("a sandbox in which nobody answers was leased")
	}
	if got := m.events.kinds(); !slices.Equal(got, []EventKind{EventCreated, EventEnded}) {
		t.Errorf("told %v", got)
	}
}
