package bridge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Scope says whose settings are edited.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user"    // all projects of one person
	ScopeProject Scope = "project" // one project, shared with its repository
	ScopeManaged Scope = "managed" // everybody on this machine; the only one that a project cannot switch off
)

// Setup says what is installed and where. It is also what is uninstalled and examined.
type Setup struct {
	Client  string // one of those in clients.go
	Scope   Scope  // default ScopeUser
	Project string // directory, for ScopeProject and for finding out what a project switches off

	Home    string                   // the person's home directory
	Getenv  func(name string) string // the environment, in which a variable may move the client's own directory; nil: none does
	Managed string                   // the administrator's settings file; default: where the client looks for it

	Hook     string   // absolute path of toolward-hook, or of toolward itself
	HookArgs []string // arguments in front: {"hook"} for toolward itself
	HookDue  bool     // the program is put there before the plan is applied, and is not looked at

	State           string        // Toolward's home: where the socket is
	Backups         string        // where backups go; default: "installed" in State
	ApprovalTimeout time.Duration // how long a question waits; default 120 s
	EnforceText     bool          // the daemon rewrites commands to what was judged
	KeepSkillShell  bool          // leave the client's shell lines in skills on: every skill will ask

	client    *client // the row of Client
	directory string  // the client's own, with its settings
}

// Plan is a change of a settings file that has been prepared and not been made. Show Diff, then Apply.
type Plan struct {
	Path    string
	Diff    string   // unified; empty if nothing is to be changed
	Notes   []string // what a person should know, in sentences
	before  []byte   // nil: there was no file
	after   []byte   // nil: the file goes
	client  string
	record  record
	backups string
	forget  bool // the plan is an uninstallation

	everybody bool // on this machine obeys the file
}

// record is what Apply keeps among the backups, so that Uninstall can restore the file byte for byte.
type record struct {
	Path       string `json:"path"`
	Existed    bool   `json:"existed"`
	Before     []byte `json:"before"`
	AfterHash  string `json:"afterSha256"`
	SkillShell bool   `json:"skillShell"` // disableSkillShellExecution was added
}

const (
	skillShellKey = "disableSkillShellExecution"
	// hookMargin is what a hook may take longer than the question it waits for.
	hookMargin = 15 * time.Second
	// quickTimeout is the time-out of events that wait for nobody, in seconds.
	quickTimeout = 10
	// ownMargin is by how many seconds the hook gives up before the client does.
	ownMargin = 2
)

// PlanInstall prepares putting the hook into the client's settings.
func PlanInstall(s Setup) (*Plan, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	if !s.HookDue {
		if err := s.checkHook(); err != nil {
			return nil, err
		}
	}
	p, edited, err := s.open()
	if err != nil {
		return nil, err
	}
	if off, _ := edited.flag("disableAllHooks"); off {
		return nil, fmt.Errorf("%s: disableAllHooks is true, so the client would run no hook: remove that line first", p.Path)
	}
	if err := edited.install(s.client.events, s.group); err != nil {
		return nil, fmt.Errorf("%s: %w: mend it, then install again", p.Path, err)
	}
	switch off, have := edited.flag(skillShellKey); {
	case s.KeepSkillShell, off:
	case have:
		p.Notes = append(p.Notes, skillShellKey+" is false in this file, so every skill will ask: a skill's shell lines run without a hook.")
	default:
		edited.setFlag(skillShellKey, true)
		p.record.SkillShell = true
	}
	p.after = edited.bytes()
	if s.Scope != ScopeManaged {
		p.Notes = append(p.Notes, "A project can switch all hooks of this file off with disableAllHooks; only managed settings cannot be switched off.")
	}
	return p, p.check()
}

// PlanUninstall prepares taking the hook out again. A file that is as Install left it becomes byte for byte what it
// was; in a file that was edited since only Toolward's entries are taken out.
func PlanUninstall(s Setup) (*Plan, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	p, edited, err := s.open()
	if err != nil {
		return nil, err
	}
	p.forget = true
	if p.before == nil {
		return p, nil
	}
	if kept, ok := p.kept(); ok {
		p.record.SkillShell = kept.SkillShell
		if kept.AfterHash == hash(p.before) {
			p.after = kept.Before
			if !kept.Existed {
				p.after = nil
			}
			return p, p.check()
		}
	}
	if err := edited.uninstall(); err != nil {
		return nil, fmt.Errorf("%s: %w: mend it, then uninstall again", p.Path, err)
	}
	if p.record.SkillShell {
		edited.remove(skillShellKey)
	}
	p.after = edited.bytes()
	return p, p.check()
}

// complete fills in defaults and refuses what cannot be.
func (s Setup) complete() (Setup, error) {
	s.Scope = cmp.Or(s.Scope, ScopeUser)
	if s.client = clientNamed(s.Client); s.client == nil {
		return s, fmt.Errorf("client %q is unknown; use %s", s.Client, strings.Join(Clients(), ", "))
	}
	if s.Getenv != nil {
		s.directory = s.Getenv(s.client.variable)
	}
	s.directory = cmp.Or(s.directory, filepath.Join(s.Home, s.client.directory))
	s.Managed = cmp.Or(s.Managed, s.client.managed())
	s.Backups = cmp.Or(s.Backups, filepath.Join(s.State, "installed"))
	if s.ApprovalTimeout <= 0 {
		s.ApprovalTimeout = 120 * time.Second
	}
	switch {
	case s.Scope != ScopeUser && s.Scope != ScopeProject && s.Scope != ScopeManaged:
		return s, fmt.Errorf("scope %q is unknown; use user, project or managed", s.Scope)
	case !filepath.IsAbs(s.Home) || !filepath.IsAbs(s.State):
		return s, errors.New("the home directory and Toolward's home must be absolute paths")
	case s.Scope == ScopeProject && !filepath.IsAbs(s.Project):
		return s, errors.New("the project directory must be an absolute path")
	}
	return s, nil
}

// checkHook makes sure that the client will be able to start the program.
func (s *Setup) checkHook() error {
	if !filepath.IsAbs(s.Hook) {
		return fmt.Errorf("the hook program %q is not an absolute path", s.Hook)
	}
	info, err := os.Stat(s.Hook)
	switch {
	case err != nil:
		return fmt.Errorf("the hook program: %w", err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("the hook program %s cannot be run", s.Hook)
	}
	return nil
}

// path is the settings file of the scope.
func (s *Setup) path() string {
	switch s.Scope {
	case ScopeProject:
		return filepath.Join(s.Project, s.client.directory, "settings.json")
	case ScopeManaged:
		return s.Managed
	}
	return filepath.Join(s.directory, "settings.json")
}

// timeout is the client's time-out for an event, in seconds.
func (s *Setup) timeout(event string) int {
	if event == "PreToolUse" {
		return int((s.ApprovalTimeout + hookMargin + time.Second - 1) / time.Second)
	}
	return quickTimeout
}

// group is what is written for one event.
func (s *Setup) group(event string) group {
	timeout := s.timeout(event)
	h := handler{
		Type: "command", Command: s.Hook, Timeout: timeout,
		Args: append(append([]string{}, s.HookArgs...), s.Client, event, "--home", s.State, "--deadline", strconv.Itoa(timeout-ownMargin)),
	}
	g := group{Hooks: []handler{h}}
	switch event {
	case "PreToolUse":
		// Without it a hook that cannot be started, crashes or hangs lets the tool run.
		g.Hooks[0].OnFailure = "block"
		g.Matcher = "*"
	case "PostToolUse", "PostToolUseFailure", "PermissionDenied":
		g.Matcher = "*"
	}
	return g
}

// open reads the settings file of the scope. Symbolic links, which keep many people's settings in a repository of
// their own, stay: what they lead to is edited.
func (s *Setup) open() (*Plan, *settings, error) {
	p := &Plan{Path: s.path(), client: s.Client, backups: s.Backups, everybody: s.Scope == ScopeManaged}
	if real, err := filepath.EvalSymlinks(p.Path); err == nil {
		p.Path = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	data, err := os.ReadFile(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, err
	default:
		p.before = append([]byte{}, data...)
	}
	edited, err := parseSettings(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not readable as JSON (%w): it stays untouched; mend it, then try again", p.Path, err)
	}
	return p, edited, nil
}

// check is the last look at a plan before it may be shown: it must change nothing but what is Toolward's.
func (p *Plan) check() error {
	before, after := p.before, p.after
	if p.after == nil {
		after = []byte("{}")
	}
	if !sameButOurs(before, after, skillShellKey) {
		return fmt.Errorf("%s: the change would touch more than Toolward's own entries: nothing was written", p.Path)
	}
	if !bytes.Equal(p.before, p.after) {
		p.Diff = unified(p.Path, string(p.before), string(p.after))
	}
	return nil
}

// Changed reports whether there is anything to write.
func (p *Plan) Changed() bool {
	return !bytes.Equal(p.before, p.after) || (p.before == nil) != (p.after == nil)
}

// Apply makes the change: the file is replaced in one step, keeps its mode, and is not touched if somebody has
// changed it since the plan was made.
func (p *Plan) Apply() error {
	if !p.Changed() {
		return nil
	}
	now, err := os.ReadFile(p.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, p.before) || (err != nil) != (p.before == nil) {
		return fmt.Errorf("%s was changed by somebody else in the meantime: nothing was written; try again", p.Path)
	}
	if p.forget {
		if err := p.write(); err != nil {
			return err
		}
		return ignoreMissing(os.Remove(p.backup()))
	}
	if err := p.keep(); err != nil {
		return fmt.Errorf("keep a copy of %s: %w", p.Path, err)
	}
	return p.write()
}

func (p *Plan) write() error {
	if p.after == nil {
		return ignoreMissing(os.Remove(p.Path))
	}
	mode, dirMode := fs.FileMode(0o600), fs.FileMode(0o700)
	if p.everybody { // a client that cannot read the machine's settings starts without the hook
		mode, dirMode = 0o644, 0o755
	}
	dir := filepath.Dir(p.Path)
	if info, err := os.Stat(p.Path); err == nil {
		mode = info.Mode().Perm()
	} else if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(dir, dirMode), os.Chmod(dir, dirMode)); err != nil {
			return err
		}
	}
	return replaceFile(p.Path, p.after, mode)
}

// replaceFile writes beside the file and renames, so that a crash leaves the old or the new one, never a part.
func replaceFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// backup is the file that remembers the settings file as it was.
func (p *Plan) backup() string {
	return filepath.Join(p.backups, p.client+"-"+hash([]byte(p.Path))[:16]+".json")
}

// keep remembers the file as it was before the first installation; a second one only updates what it wrote.
func (p *Plan) keep() error {
	r := record{Path: p.Path, Existed: p.before != nil, Before: p.before, SkillShell: p.record.SkillShell}
	if kept, ok := p.kept(); ok && kept.AfterHash == hash(p.before) {
		r.Existed, r.Before, r.SkillShell = kept.Existed, kept.Before, kept.SkillShell || r.SkillShell
	}
	r.AfterHash = hash(p.after)
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.backups, 0o700); err != nil {
		return err
	}
	return replaceFile(p.backup(), data, 0o600)
}

func (p *Plan) kept() (r record, ok bool) {
	data, err := os.ReadFile(p.backup())
	return r, err == nil && json.Unmarshal(data, &r) == nil && r.Path == p.Path
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
