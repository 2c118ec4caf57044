package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolward/toolward/sandbox"
)

// CodeRegistryInvalid is a registry file that cannot be understood. It is never written over.
const CodeRegistryInvalid sandbox.Code = "registry_invalid"

// Registered is what is remembered of one sandbox.
type Registered struct {
	Name         string `json:"containerName"`
	ScopeKey     string `json:"sessionKey"`
	CreatedMs    int64  `json:"createdAtMs"`
	UsedMs       int64  `json:"lastUsedAtMs"`
	Image        string `json:"image"`
	Hash         string `json:"configHash,omitempty"`
	SecurityHash string `json:"securityHash,omitempty"` // of what confines
	Engine       string `json:"engine,omitempty"`
	EngineID     string `json:"engineId,omitempty"`
	CDPPort      int    `json:"cdpPort,omitempty"` // of a browser's sandbox, as its NoVNCPort
	NoVNCPort    int    `json:"noVncPort,omitempty"`
}

// Upsert puts an entry last. The age and the image are those of the entry that was there; so is the hash, if the new one
// has none.
func Upsert(entries []Registered, e Registered) []Registered {
	if i := slices.IndexFunc(entries, named(e.Name)); i >= 0 {
		old := entries[i]
		e.CreatedMs, e.Image = old.CreatedMs, old.Image
		for _, field := range []struct{ now, before *string }{
			{&e.Hash, &old.Hash}, {&e.SecurityHash, &old.SecurityHash}, {&e.Engine, &old.Engine}, {&e.EngineID, &old.EngineID},
		} {
			if *field.now == "" {
				*field.now = *field.before
			}
		}
	}
	entries, _ = Drop(entries, e.Name)
	return append(entries, e)
}

// Replace puts the entry of a sandbox that was made anew last: nothing of the old one is kept.
func Replace(entries []Registered, e Registered) []Registered {
	entries, _ = Drop(entries, e.Name)
	return append(entries, e)
}

// Drop takes an entry out, however often somebody has written it; false: there was none.
func Drop(entries []Registered, name string) ([]Registered, bool) {
	kept := slices.DeleteFunc(slices.Clone(entries), named(name))
	return kept, len(kept) < len(entries)
}

// dropped is a change that takes an entry out.
func dropped(name string) func([]Registered) ([]Registered, bool) {
	return func(entries []Registered) ([]Registered, bool) { return Drop(entries, name) }
}

func named(name string) func(Registered) bool {
	return func(e Registered) bool { return e.Name == name }
}

// ParseRegistry reads the content of a registry file; nil is a file that does not exist.
func ParseRegistry(content []byte) ([]Registered, error) {
	if content == nil {
		return []Registered{}, nil
	}
	var file struct {
		Entries *[]Registered `json:"entries"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return nil, sandbox.Errorf(CodeRegistryInvalid, "sandbox registry: %v", err)
	}
	if file.Entries == nil {
		return nil, sandbox.Errorf(CodeRegistryInvalid, "sandbox registry: it has no entries")
	}
	for i, e := range *file.Entries {
		if e.Name == "" {
			return nil, sandbox.Errorf(CodeRegistryInvalid, "sandbox registry: entry %d has no name", i)
		}
	}
	return *file.Entries, nil
}

// Registry is the file that remembers the sandboxes of one kind. It is safe for concurrent use, by several processes
// too.
type Registry struct {
	path string
	mu   sync.Mutex
}

// NewRegistry is the registry in a file, which need not exist.
func NewRegistry(path string) *Registry { return &Registry{path: path} }

// Entries is what the file says. One that cannot be understood is an error.
func (r *Registry) Entries() ([]Registered, error) {
	content, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return []Registered{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox registry: %w", err)
	}
	entries, err := ParseRegistry(content)
	if err != nil {
		return nil, &sandbox.Error{
			Code: CodeRegistryInvalid, Text: r.path + ": " + err.Error(),
			Fix: "move the file away; sandboxes that run are found again", Cause: err,
		}
	}
	return entries, nil
}

// List is Entries for people who only look: a file that cannot be understood is an empty list and a warning.
func (r *Registry) List() (entries []Registered, warning error) {
	entries, err := r.Entries()
	if err != nil {
		return []Registered{}, err
	}
	return entries, nil
}

// Update changes the file under its lock. change returns the new entries, and false when nothing is to be written.
func (r *Registry) Update(change func([]Registered) ([]Registered, bool)) error {
	return r.locked(func() error {
		entries, err := r.Entries()
		if err != nil {
			return err
		}
		entries, changed := change(entries)
		if !changed {
			return nil
		}
		return r.write(entries)
	})
}

// locked does something while nobody else changes the file.
func (r *Registry) locked(do func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return fmt.Errorf("sandbox registry: %w", err)
	}
	unlock, err := lockFile(r.path + ".lock")
	if err != nil {
		return fmt.Errorf("sandbox registry: %w", err)
	}
	defer unlock()
	return do()
}

// write replaces the file, all or nothing.
func (r *Registry) write(entries []Registered) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{"entries": nonNil(entries)}); err != nil {
		return fmt.Errorf("sandbox registry: %w", err)
	}
	if err := replace(r.path, b.Bytes()); err != nil {
		return fmt.Errorf("sandbox registry: %w", err)
	}
	return nil
}

// sweep removes what processes left that were killed while they wrote the file.
func (r *Registry) sweep() error {
	return r.locked(func() error { return sweepWriting(r.path) })
}

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
