package sandbox

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
	"time"
)

// Machine is what a Toolward home knows of the machine that it is on: its own name in engines, and which mode counts
// where the configuration names none.
type Machine struct {
	Instance string    `json:"instance"`
	Mode     Mode      `json:"mode,omitempty"` // "" until an engine was looked for
	Engine   string    `json:"engine,omitempty"`
	Why      string    `json:"why,omitempty"`
	Decided  time.Time `json:"decidedAt,omitzero"`
}

// probeTime bounds how long one engine may take to say what it can do.
const probeTime = 20 * time.Second

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
	if err == nil && (len(m.Instance) < 16 || m.Mode != "" && m.Mode != ModeOff && m.Mode != ModeNonMain) {
		err = errors.New("it is not what was written there")
	}
	if err != nil {
		return Machine{}, false, &Error{
			Code: CodeConfig, Text: fmt.Sprintf("%s: %v", machinePath(stateDir), err),
			Fix: "move the file away; the next start decides again", Cause: err,
		}
	}
	return m, true, nil
}

// OpenMachine reads what was kept, or decides and keeps it. What was decided never changes by itself: a machine on which
// an engine stops working must not run commands unconfined from then on, nor confine them where nobody expects it.
func OpenMachine(ctx context.Context, stateDir string, engines []Engine) (Machine, error) {
	m, known, err := ReadMachine(stateDir)
	if err != nil || known && m.Mode != "" {
		return m, err
	}
	if !known {
		id := make([]byte, 16)
		_, _ = rand.Read(id) // does not fail
		m.Instance = hex.EncodeToString(id)
	}
	if len(engines) > 0 {
		m.decide(ctx, engines)
		if err := ctx.Err(); err != nil {
			return m, err // a start that was interrupted decides nothing
		}
	}
	if known && m.Mode == "" {
		return m, nil
	}
	return m, m.keep(stateDir)
}

func (m *Machine) decide(ctx context.Context, engines []Engine) {
	m.Mode, m.Why, m.Decided = ModeOff, "no engine works on this machine", time.Now().UTC().Truncate(time.Second)
	for _, e := range engines {
		ctx, cancel := context.WithTimeout(ctx, probeTime)
		found, err := e.Probe(ctx)
		cancel()
		if err == nil && found.Level == LevelFull {
			m.Mode, m.Engine, m.Why = ModeNonMain, e.Name(), "the engine "+e.Name()+" works on this machine"
			return
		}
	}
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

// replace writes a file of 0600, all or nothing.
func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
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
