package fleet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/sandbox/toolchain"

	"github.com/toolward/toolward/sandbox"
)

// Machine is what a Toolward home knows of the machine that it is on: its own name in engines, and which mode counts
// where the configuration names none. What was decided never changes by itself: a machine on which an engine stops
// working must not run commands unconfined from then on, nor confine them where nobody expects it.
type Machine struct {
	Instance string        `json:"instance"`
	Mode     settings.Mode `json:"mode,omitempty"` // "" until it is decided
	// Network is that of sandboxes where the configuration names none; "" is none. Homes that an older version has decided about have
	// none: what runs there must not reach more by an update.
	Network sandbox.NetworkMode `json:"network,omitempty"`
	Due     bool                `json:"due,omitempty"`    // it is to be decided: no engine has answered yet
	Engine  string              `json:"engine,omitempty"` // that worked
	Why     string              `json:"why,omitempty"`
	Decided time.Time           `json:"decidedAt,omitzero"`
	// Tools are the person's toolchains, as they were found at the first start or by a probe since.
	Tools *toolchain.Found `json:"toolchains,omitempty"`
}

const (
	// probeTime bounds how long one engine may take to say what it can do.
	probeTime = 20 * time.Second
	// decideTime is the same while a start waits for it: a container engine that hangs does not hold up the gateway.
	decideTime = 4 * time.Second
	// maxWhy bounds what is kept of the reasons.
	maxWhy = 2000
)

func machinePath(stateDir string) string { return filepath.Join(stateDir, "sandbox", "machine.json") }

// ReadMachine reads what was kept; known is false before the first start.
func ReadMachine(stateDir string) (m Machine, known bool, err error) {
	content, err := os.ReadFile(machinePath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return Machine{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &m)
	}
	if err == nil && (len(m.Instance) < 16 || m.Mode != "" && m.Mode != settings.ModeOff && m.Mode != settings.ModeNonMain || m.Network != "" && m.Network != sandbox.NetworkEgress) {
		err = errors.New("it is not what was written there")
	}
	if err != nil {
		return Machine{}, false, &sandbox.Error{
			Code: sandbox.CodeConfig, Text: fmt.Sprintf("%s: %v", machinePath(stateDir), err),
			Fix: "move the file away; the next start decides again", Cause: err,
		}
	}
	return m, true, nil
}

// Surroundings is what the configuration does not say about the sandboxes of a Toolward home, with what is known of the
// machine.
func (m *Machine) Surroundings(stateDir string) settings.Surroundings {
	around := settings.OnThisMachine(stateDir)
	around.Instance, around.Undecided, around.Network = m.Instance, m.Default(), m.Network
	if m.Tools != nil {
		around.Tools = *m.Tools
	}
	return around
}

// FindTools looks for the person's toolchains, and keeps what it finds. A start does so once: what is shown to sandboxes later
// does not follow what somebody has put into the home meanwhile, but people, who ask for it.
func (m *Machine) FindTools(stateDir string) error {
	found := toolchain.Detect(toolchain.Machine{Home: settings.OnThisMachine(stateDir).Home, Path: os.Getenv("PATH"), Getenv: os.Getenv, Environ: os.Environ()})
	m.Tools = &found
	return m.keep(stateDir)
}

// OpenMachine reads what was kept, or begins it. In a home that is new the mode is to be decided; one that an older
// version has made keeps running commands where it did, because nobody there expects another place. What was kept and is
// gone is to be decided again: a lost file is nobody's word that commands may run unconfined.
//
// recorded says that the home has a record of a call. A home without one is new, whatever an earlier start has left in it that
// failed: else one mistake in the first configuration would leave commands unconfined for good. untouched is true when no
// sandbox can be left of an earlier run.
func OpenMachine(stateDir string, recorded bool) (m Machine, untouched bool, err error) {
	m, known, err := ReadMachine(stateDir)
	untouched = err == nil && !recorded && !known
	if err != nil || m.Mode != "" || m.Due {
		return m, untouched, err
	}
	isNew := !recorded
	if !known {
		id := make([]byte, 16)
		_, _ = rand.Read(id) // does not fail
		m.Instance = hex.EncodeToString(id)
		_, err := os.Lstat(filepath.Dir(machinePath(stateDir)))
		isNew = isNew || !errors.Is(err, fs.ErrNotExist)
	}
	if m.Due = isNew; !isNew {
		m.decided(settings.ModeOff, "", "this home was made before sandboxes were the default")
	}
	return m, untouched, m.keep(stateDir)
}

// Decide asks the engines, if that is due, and keeps what they say: the mode is non-main by the first that can enforce
// what r asks for, and off if none can. An engine that fails, or does not answer in time, has not said that it cannot:
// then nothing is kept, and the next start asks again. Else one slow moment would leave a machine unconfined for ever.
func (m *Machine) Decide(ctx context.Context, stateDir string, engines []sandbox.Engine, r *settings.Resolved) error {
	if !m.Due {
		return nil
	}
	var reasons []string
	m.Why = ""
	for _, e := range candidates(r, engines) {
		found, err := probed(ctx, e)
		if err != nil {
			m.Why = fmt.Sprintf("the engine %s has not said whether it works: %v", e.Name(), err)
			continue
		}
		why := lacks(found, r.DegradeOK)
		if why == "" {
			m.decided(settings.ModeNonMain, e.Name(), "the engine "+e.Name()+" works on this machine")
			if found.Level != sandbox.LevelLandlock { // which cannot make a way to the proxy
				m.Network = sandbox.NetworkEgress
			}
			return m.keep(stateDir)
		}
		reasons = append(reasons, e.Name()+": "+why)
	}
	if m.Why != "" || len(reasons) == 0 {
		return nil
	}
	m.decided(settings.ModeOff, "", fmt.Sprintf("no engine works on this machine: %.*s", maxWhy, strings.Join(reasons, "; ")))
	return m.keep(stateDir)
}

// probed is what an engine says of itself within the patience of a start; an error if it has not said anything certain.
func probed(ctx context.Context, e sandbox.Engine) (sandbox.Capabilities, error) {
	bounded, cancel := context.WithTimeout(ctx, decideTime)
	defer cancel()
	type said struct {
		found sandbox.Capabilities
		err   error
	}
	answers := make(chan said, 1)
	go func() { // what hangs in the kernel ends no sooner because its context has
		found, err := e.Probe(bounded)
		answers <- said{found, err}
	}()
	select {
	case a := <-answers:
		if a.err == nil && bounded.Err() != nil && !a.found.Works() {
			a.err = context.Cause(bounded) // it may have said no because it ran out of time
		}
		return a.found, a.err
	case <-bounded.Done():
		return sandbox.Capabilities{}, context.Cause(bounded)
	}
}

func (m *Machine) decided(mode settings.Mode, engine, why string) {
	m.Mode, m.Engine, m.Why, m.Due = mode, engine, why, false
	m.Decided = time.Now().UTC().Truncate(time.Second)
}

// Default is the mode where the configuration names none. As long as no engine has said whether it works, calls need a
// sandbox and are refused without one: that nobody knows is no reason to run them unconfined. "" is not decided.
func (m *Machine) Default() settings.Mode {
	if m.Mode == "" && m.Due {
		return settings.ModeNonMain
	}
	return m.Mode
}

func (m *Machine) keep(stateDir string) error {
	dir := filepath.Dir(machinePath(stateDir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep what this machine can do: %w", err)
	}
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("keep what this machine can do: %w", err)
	}
	return replace(machinePath(stateDir), append(content, '\n'))
}

// temporaryEnd ends the name of a file that is being written, after that of the one that it is to replace.
const temporaryEnd = ".tmp"

// sweepWriting removes what was left of a file by those who were killed while they replaced it.
func sweepWriting(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var failed []error
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, filepath.Base(path)+".") && strings.HasSuffix(name, temporaryEnd) {
			failed = append(failed, os.Remove(filepath.Join(filepath.Dir(path), name)))
		}
	}
	return errors.Join(append(failed, err)...)
}

// replace writes a file of 0600, all or nothing.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+temporaryEnd)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}
