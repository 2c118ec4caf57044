package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward/sandbox"
)

func add(e Registered) func([]Registered) ([]Registered, bool) {
	return func(all []Registered) ([]Registered, bool) { return Upsert(all, e), true }
}

// Several registries on one file stand for several processes.
func TestRegistryIsChangedByManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "containers.json")
	var wg sync.WaitGroup
	for i := range 8 {
		r := NewRegistry(path)
		wg.Go(func() {
			for k := range 3 {
				if err := r.Update(add(Registered{Name: fmt.Sprintf("%d-%d", i, k)})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	entries, err := NewRegistry(path).Entries()
	if err != nil || len(entries) != 24 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBrokenRegistryIsNeverWrittenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "containers.json")
	if err := os.WriteFile(path, []byte(`{"entries": [{"containerName": "a"`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewRegistry(path)
	if err := r.Update(add(Registered{Name: "b"})); sandbox.CodeOf(err) != CodeRegistryInvalid {
		t.Errorf("changed: %v", err)
	}
	if entries, warning := r.List(); len(entries) != 0 || warning == nil {
		t.Errorf("%v %v", entries, warning)
	}
	if content, _ := os.ReadFile(path); !strings.HasPrefix(string(content), `{"entries": [{`) {
		t.Errorf("the file is %q", content)
	}
}

func TestRegistryFileIsForPeopleToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "containers.json")
	if err := NewRegistry(path).Update(add(Registered{Name: "a", ScopeKey: "agent:<b>", CreatedMs: 1, UsedMs: 2, Image: "i"})); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"entries\": [\n    {\n      \"containerName\": \"a\",\n      \"sessionKey\": \"agent:<b>\",\n      \"createdAtMs\": 1,\n      \"lastUsedAtMs\": 2,\n      \"image\": \"i\"\n    }\n  ]\n}\n"
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestLockOfTheDeadIsTakenOver(t *testing.T) {
	now := time.Now().Format(time.RFC3339)
	for name, content := range map[string]string{
		"dead": `{"pid": 4194303, "createdAt": "` + now + `"}`,
		"old":  fmt.Sprintf(`{"pid": %d, "createdAt": "2020-01-01T00:00:00Z"}`, os.Getpid()),
		// A gateway in a container gets the number of the one before it, which was killed.
		"killed, its number given again": fmt.Sprintf(`{"pid": %d, "createdAt": %q, "held": true}`, os.Getpid(), now),
		"killed before it was written":   "",
		"killed while it was written":    `{"pid": 41`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			before := time.Now().Add(-lockNameless)
			if err := os.Chtimes(path, before, before); err != nil {
				t.Fatal(err)
			}
			unlock, err := lockFile(path)
			if err != nil {
				t.Fatal(err)
			}
			unlock()
			if _, err := os.Stat(path); err == nil {
				t.Error("the lock is still there")
			}
		})
	}
}

func TestLockOfTheLivingIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if reclaim(path, 0) {
		t.Error("a lock that is held was taken")
	}
	other := filepath.Join(t.TempDir(), "other") // of a program that holds it by its existence alone
	if err := os.WriteFile(other, fmt.Appendf(nil, `{"pid": %d, "createdAt": %q}`, os.Getpid(), time.Now().Format(time.RFC3339)), 0o600); err != nil {
		t.Fatal(err)
	}
	if reclaim(other, 0) {
		t.Error("the lock of a process that lives was taken")
	}
	half := filepath.Join(t.TempDir(), "half")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if reclaim(half, lockNameless) {
		t.Error("a lock that is just being made was taken")
	}
}

// Whoever takes a lock and is taken for dead meanwhile takes it once more: two never hold it.
func TestLockThatIsTakenOverIsNotHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reclaim(path, 0) {
		t.Fatal("a lock that says nothing was kept")
	}
	if _, err := holdLock(f, path); !errors.Is(err, errLockLost) {
		t.Errorf("a lock that was removed is held: %v", err)
	}
	unlock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// A file that somebody has edited may have an entry twice: one that is removed must not come back.
func TestEntriesThatStandTwice(t *testing.T) {
	twice := []Registered{{Name: "a", UsedMs: 1}, {Name: "b"}, {Name: "a", UsedMs: 2}}
	if left, changed := Drop(twice, "a"); !changed || len(left) != 1 || left[0].Name != "b" {
		t.Errorf("dropped: %+v", left)
	}
	if got := Upsert(twice, Registered{Name: "a", UsedMs: 3}); len(got) != 2 || got[1].UsedMs != 3 {
		t.Errorf("used: %+v", got)
	}
	if len(twice) != 3 || twice[2].UsedMs != 2 {
		t.Errorf("what was given has changed: %+v", twice)
	}
}

// What stands in the entry of a browser stays there.
func TestRegistryKeepsPorts(t *testing.T) {
	entries, err := ParseRegistry([]byte(`{"entries":[{"containerName":"b","cdpPort":32768,"noVncPort":32769,"createdAtMs":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	entries = Upsert(entries, Registered{Name: "b", CreatedMs: 9, CDPPort: 40000})
	if raw, err := json.Marshal(entries); err != nil || len(entries) != 1 || entries[0].CreatedMs != 1 || entries[0].CDPPort != 40000 || entries[0].NoVNCPort != 0 {
		t.Errorf("%s %v", raw, err)
	}
}
