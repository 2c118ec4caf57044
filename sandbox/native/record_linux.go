package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside/wire"
)

// record is what the next gateway must know of a sandbox that goes on without one. It is written before the sandbox can do
// so: one that nobody knows would never be ended.
type record struct {
	Name     string      `json:"name"`
	ScopeKey string      `json:"scopeKey"`
	Hash     string      `json:"configHash"`
	Instance string      `json:"instance"`
	Created  time.Time   `json:"createdAt"`
	ID       string      `json:"engineId"` // of its first process: number, start time and boot
	UID      int         `json:"uid"`      // of the host: who runs inside
	Key      []byte      `json:"key"`      // that a gateway shows
	Answer   []byte      `json:"answer"`   // that is shown to a gateway
	Made     string      `json:"made"`     // by which program, behind which filter
	Ready    bool        `json:"ready"`    // its set-up command has ended
	Before   *int64      `json:"diskBefore,omitempty"`
	Group    *groupPaths `json:"group,omitempty"`
}

// groupPaths is where the control group of a sandbox is. Another gateway may be in another group itself.
type groupPaths struct {
	Dirs []string          `json:"dirs"`
	V2   string            `json:"v2,omitempty"`
	V1   map[string]string `json:"v1,omitempty"`
}

func pathsOf(g *group) *groupPaths {
	if g == nil {
		return nil
	}
	return &groupPaths{g.dirs, g.v2, g.v1}
}

func (r *record) group() *group {
	if r.Group == nil {
		return nil
	}
	return &group{dirs: r.Group.Dirs, v2: r.Group.V2, v1: r.Group.V1}
}

func (r *record) state() sandbox.State {
	return sandbox.State{
		Name: r.Name, Engine: Name, EngineID: r.ID, ScopeKey: r.ScopeKey, Hash: r.Hash, Instance: r.Instance, Running: true,
		Created: r.Created, Detached: true,
	}
}

// sound reports whether a record is one that this program has written for its name.
func (r *record) sound(name string) bool {
	return r.Name == name && soundName(name) && len(r.Key) == wire.NonceSize && len(r.Answer) == wire.NonceSize
}

func soundName(name string) bool {
	return name != "" && name == filepath.Base(name) && name[0] != '.'
}

// supervised is what goes on without a gateway and was not taken over by this one, by name. Its directory holds the records
// and the sockets by which sandboxes are met again.
type supervised struct {
	dir   string
	found map[string]*record // guarded by the Engine's mutex
}

const (
	recordSuffix = ".json"
	socketSuffix = ".sock"
	halfSuffix   = ".tmp" // half written
)

func (s *supervised) path(name, suffix string) string { return filepath.Join(s.dir, name+suffix) }

// open makes the directory, or checks it: whoever else may write there could take the place of a supervisor.
func (s *supervised) open() error {
	if s.dir == "" {
		return errors.New("it has no directory for what goes on without the gateway")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(s.dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || info.Mode().Perm() != 0o700 || int(owner) != os.Geteuid() {
		return fmt.Errorf("%s is not a directory of user %d alone (mode 0700)", s.dir, os.Geteuid())
	}
	return nil
}

// write writes a record, all or nothing.
func (s *supervised) write(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	half := s.path(r.Name, recordSuffix+halfSuffix)
	file, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(half, s.path(r.Name, recordSuffix))
}

// remove removes what belongs to a name.
func (s *supervised) remove(name string) error {
	var failed []error
	for _, suffix := range []string{socketSuffix, recordSuffix} { // the record last: without it nobody finds the rest
		if err := os.Remove(s.path(name, suffix)); !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// load reads all records. What is no record of ours, or has none, is removed: nothing can be done with it.
func (s *supervised) load() (map[string]*record, error) {
	all := map[string]*record{}
	if _, err := os.Lstat(s.dir); s.dir == "" || errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), recordSuffix)
		if !isRecord {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		r := &record{}
		if err == nil {
			err = json.Unmarshal(data, r)
		}
		if err == nil && !r.sound(name) {
			err = errors.New("it is no record of this program")
		}
		if err != nil { // what it is about ends with its control group, or by itself
			failed = append(failed, fmt.Errorf("%s: %w", entry.Name(), err), os.Remove(filepath.Join(s.dir, entry.Name())))
			continue
		}
		all[name] = r
	}
	for _, entry := range entries {
		name, isSocket := strings.CutSuffix(entry.Name(), socketSuffix)
		if isSocket && all[name] == nil || strings.HasSuffix(entry.Name(), halfSuffix) {
			failed = append(failed, os.Remove(filepath.Join(s.dir, entry.Name())))
		}
	}
	return all, errors.Join(failed...)
}
