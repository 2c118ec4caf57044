package installation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolward/toolward/hostdaemon"
)

// What a gateway with a user of its own consists of.
const (
	SystemUser    = "toolward"
	SystemState   = "/var/lib/toolward"
	SystemProgram = "/usr/local/sbin/toolward"
	SystemUnit    = "/etc/systemd/system/toolward.service"
	systemRun     = "/run/toolward"
	systemSocket  = systemRun + "/toolward.sock"
)

// systemMade says what an installation has made. It lies where only root can write: what it names is removed by root.
const systemMade = "/var/lib/toolward-install/system.json"

// System is a gateway for a person's agents that has a user of its own, installed or about to be. Its methods need root.
type System struct {
	Person string   `json:"person"`
	Made   []string `json:"made"` // before each was made: what is half done is known as well
}

// Words of System.Made.
const (
	madeUser    = "user"
	madeState   = "state"
	madeProgram = "program"
	madeUnit    = "unit"
	madeDaemon  = "daemon"
)

// ErrNoSystem says that there is no such installation.
var ErrNoSystem = errors.New("there is no system install on this machine")

// needRoot says who may install.
func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can give the gateway a user of its own")
	}
	return nil
}

// FindSystem reads what an installation has made, or ErrNoSystem.
func FindSystem() (*System, error) {
	if err := needRoot(); err != nil {
		return nil, err
	}
	info, err := os.Lstat(systemMade)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoSystem
	}
	if err != nil {
		return nil, err
	}
	if err := rootsWay(filepath.Dir(systemMade)); err != nil {
		return nil, err
	}
	if notRoots(info) != "" || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file of root's alone: look who made it", systemMade)
	}
	data, err := os.ReadFile(systemMade)
	if err != nil {
		return nil, err
	}
	s := &System{}
	if err := json.Unmarshal(data, s); err != nil || s.Person == "" {
		return nil, fmt.Errorf("%s is not understood: move it away, and what it was about, too", systemMade)
	}
	return s, nil
}

// PlanSystem is the installation for a person: the one that is there, or a new one.
func PlanSystem(person string) (*System, error) {
	s, err := FindSystem()
	if err != nil && !errors.Is(err, ErrNoSystem) {
		return nil, err
	}
	account, lookup := user.Lookup(person)
	switch {
	case person == "":
		return nil, errors.New("for whom? name the user whose agents are guarded: --user NAME")
	case lookup != nil:
		return nil, lookup
	case account.Uid == "0":
		return nil, errors.New("agents that run as root can do everything, to the gateway as well: name another user with --user")
	case person == SystemUser:
		return nil, errors.New("the gateway's own user cannot be the one whose agents it guards")
	case s != nil && s.Person != person:
		return nil, fmt.Errorf("it is installed for %s, and so is the record: toolward uninstall --system --purge takes both back", s.Person)
	case s == nil:
		s = &System{Person: person}
	}
	return s, nil
}

// Install makes what is missing, and reports whether anything was. It is called again after whatever has failed.
func (s *System) Install(ctx context.Context) (changed bool, err error) {
	if err := canServe(); err != nil {
		return false, err
	}
	for _, step := range []struct {
		word string
		make func(context.Context, bool) (bool, error)
	}{
		{madeUser, s.makeUser}, {madeState, s.makeState}, {madeProgram, s.makeProgram}, {madeUnit, s.makeUnit}, {madeDaemon, s.makeDaemon},
	} {
		did, err := step.make(ctx, s.has(step.word))
		if changed = changed || did; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

func (s *System) has(word string) bool {
	return strings.Contains(" "+strings.Join(s.Made, " ")+" ", " "+word+" ")
}

// making keeps that something is about to be made here. What was there before, and is not ours, is not in the list.
func (s *System) making(word string) error {
	if s.has(word) {
		return nil
	}
	s.Made = append(s.Made, word)
	return s.keep()
}

// keep writes the list.
func (s *System) keep() error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceRoots(systemMade, append(data, '\n'), 0o644)
}

// account is the gateway's own user; nil if there is none.
func account() (uid, gid int, there bool, err error) {
	own, err := user.Lookup(SystemUser)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return 0, 0, false, nil
	}
	if err != nil {
		return 0, 0, false, err
	}
	uid, errUID := strconv.Atoi(own.Uid)
	gid, errGID := strconv.Atoi(own.Gid)
	return uid, gid, true, errors.Join(errUID, errGID)
}

// makeUser makes the user. One that was there is used only if it has the gateway's home: another service, or a person, would be the
// gateway.
func (s *System) makeUser(ctx context.Context, ours bool) (bool, error) {
	uid, _, there, err := account()
	if err != nil {
		return false, err
	}
	if there {
		own, err := user.Lookup(SystemUser)
		if err == nil && (uid == 0 || !ours && own.HomeDir != SystemState) {
			err = fmt.Errorf("there is a user %s already, with the home %s: it is not the gateway's", SystemUser, own.HomeDir)
		}
		return false, err
	}
	if err := s.making(madeUser); err != nil {
		return false, err
	}
	return true, runs(ctx, "useradd", "--system", "--user-group", "--home-dir", SystemState, "--no-create-home", "--shell", "/usr/sbin/nologin",
		"--comment", "Toolward, a tool firewall for AI agents", SystemUser)
}

// makeState makes the directory of the state. One of somebody else is not taken over: its owner can open what is in it.
func (s *System) makeState(_ context.Context, _ bool) (bool, error) {
	uid, gid, _, err := account()
	if err != nil {
		return false, err
	}
	if err := rootsWay(filepath.Dir(SystemState)); err != nil {
		return false, err
	}
	info, err := os.Lstat(SystemState)
	if err == nil && info.IsDir() && ownerOf(info) == uid && info.Mode().Perm() == 0o700 {
		return false, nil
	}
	if err == nil && !(info.IsDir() && s.has(madeState) && (ownerOf(info) == 0 || ownerOf(info) == uid)) {
		return false, fmt.Errorf("%s is there already, and is not a directory of user %s: move it away", SystemState, SystemUser)
	}
	if err := s.making(madeState); err != nil {
		return false, err
	}
	if err := os.Mkdir(SystemState, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return true, errors.Join(os.Lchown(SystemState, uid, gid), os.Chmod(SystemState, 0o700))
}

// makeProgram copies this program to where only root can change it.
func (s *System) makeProgram(_ context.Context, ours bool) (bool, error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return false, err
	}
	return s.put(madeProgram, ours, SystemProgram, data, 0o755)
}

func (s *System) makeUnit(_ context.Context, ours bool) (bool, error) {
	return s.put(madeUnit, ours, SystemUnit, []byte(systemUnit(s.Person)), 0o644)
}

// makeDaemon says to clients whom they must expect. It comes last: from then on they ask nobody else.
func (s *System) makeDaemon(_ context.Context, ours bool) (bool, error) {
	uid, _, _, err := account()
	if err != nil {
		return false, err
	}
	d := hostdaemon.Daemon{UID: uint32(uid), Socket: systemSocket, System: true}
	return s.put(madeDaemon, ours, hostdaemon.File, []byte(d.Line()), 0o644)
}

// put writes a file of root's, unless it is there as it should be. A file of somebody else's is left.
func (s *System) put(word string, ours bool, path string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil {
		old, readErr := os.ReadFile(path)
		same := readErr == nil && string(old) == string(data)
		if same && info.Mode().IsRegular() && info.Mode().Perm() == mode && notRoots(info) == "" && ours {
			return false, rootsWay(filepath.Dir(path))
		}
		if !ours {
			return false, fmt.Errorf("%s is there already, and not by this installation: move it away", path)
		}
	}
	if err := s.making(word); err != nil {
		return false, err
	}
	return true, replaceRoots(path, data, mode)
}
