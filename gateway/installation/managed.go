package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/hostdaemon"
)

// ErrNotRoot says that only root can install for everybody.
var ErrNotRoot = errors.New("the settings and programs of everybody on this machine are root's: only root can change them")

// ErrWhose says that nobody knows whose gateway the hook shall ask.
var ErrWhose = errors.New("nobody knows whose gateway the hook shall ask")

// ForEverybody is Toolward's home for an installation for everybody on this machine: given, if somebody named it, else that of the
// person who called sudo. own is the home that root itself would have. Nothing is written there: who owns it could lead root
// anywhere.
func ForEverybody(given bool, own string) (state string, err error) {
	if os.Geteuid() != 0 {
		return "", ErrNotRoot
	}
	if given {
		return own, nil
	}
	if text, sudo := os.LookupEnv("SUDO_UID"); sudo {
		return homeOf(text)
	}
	if exists, err := hostdaemon.RootsAlone(hostdaemon.File); err != nil || exists {
		return own, err
	}
	if _, err := os.Stat(own); err != nil {
		return "", fmt.Errorf("%w: root has no gateway (%w)", ErrWhose, err)
	}
	return own, nil
}

// homeOf is Toolward's home of a user, by the number that sudo says.
func homeOf(uid string) (string, error) {
	account, err := user.LookupId(uid)
	if err != nil {
		return "", fmt.Errorf("%w: SUDO_UID is %q: %w", ErrWhose, uid, err)
	}
	info, err := os.Lstat(account.HomeDir)
	if err != nil {
		return "", fmt.Errorf("%w: the home of %s: %w", ErrWhose, account.Username, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || !filepath.IsAbs(account.HomeDir) || strconv.FormatUint(uint64(stat.Uid), 10) != uid {
		return "", fmt.Errorf("%w: %s is no directory of %s", ErrWhose, account.HomeDir, account.Username)
	}
	return filepath.Join(account.HomeDir, ".toolward"), nil
}

// planManaged prepares settings for everybody that name programs which only root can exchange. A hook in a directory of the
// person's would be an agent's to replace, and settings that nobody can switch off would guard nothing.
func planManaged(ctx context.Context, setup bridge.Setup, hook string) (*Plan, error) {
	coming, err := findPrograms(ctx, setup.Client, hook)
	if err != nil {
		return nil, err
	}
	installed := coming.program(hookProgram)
	setup.Hook, setup.HookArgs, setup.HookDue = installed.path, installed.args, true
	plan, err := bridge.PlanInstall(setup)
	if err != nil {
		return nil, err
	}
	if _, err := hostdaemon.RootsAlone(plan.Path); err != nil {
		return nil, err
	}
	plan.Notes = append(plan.Notes, coming.notes()...)
	if exists, err := hostdaemon.RootsAlone(hostdaemon.File); err != nil {
		return nil, err
	} else if !exists {
		plan.Notes = append(plan.Notes, "Everybody on this machine will run this hook, and only the gateway with the home "+setup.State+
			" answers it: for users who cannot reach that one, it refuses every call.")
	}
	return &Plan{plan, coming}, nil
}

// planUnmanaged prepares taking all that back.
func planUnmanaged(setup bridge.Setup) (*Plan, error) {
	plan, err := bridge.PlanUninstall(setup)
	if err != nil {
		return nil, err
	}
	kept, err := readRecord()
	if err != nil {
		return nil, err
	}
	return &Plan{plan, &programs{client: setup.Client, record: kept, leaving: true}}, nil
}

// copies looks at the programs that were installed for everybody: whose they are, who may change them, and whether they are those
// that belong to this program.
func copies(ctx context.Context) (checks []Check) {
	if _, err := os.Lstat(companion.Libexec); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	const hint = "as root, from programs that your agents could not write: toolward install CLIENT --managed"
	for _, name := range smallPrograms {
		check := Check{Name: name, State: bridge.Passed, Hint: hint}
		there, ok, err := companion.Installed(name)
		switch {
		case err != nil:
			check.State, check.Text = bridge.Failed, err.Error()
		case !ok:
			check.State, check.Text = bridge.Failed, filepath.Join(companion.Libexec, name)+" is missing: the one of whoever starts the gateway stands in, as safe as its file"
		default:
			check.State, check.Text = compared(ctx, name, there)
		}
		if check.Passed() {
			check.Hint = ""
		}
		checks = append(checks, check)
	}
	return checks
}

// compared holds an installed program against the one that came with this one.
func compared(ctx context.Context, name string, there companion.Program) (bridge.State, string) {
	installed, err := readProgram(there.Path)
	if err != nil {
		return bridge.Failed, err.Error()
	}
	if installed.mode != programMode {
		return bridge.Failed, fmt.Sprintf("%s has mode %04o, not %04o", there.Path, installed.mode, programMode)
	}
	own, err := companion.Own(ctx, name)
	if err != nil {
		return bridge.Warned, there.Path + " cannot be compared: " + err.Error()
	}
	came, err := readProgram(own.Path)
	if err != nil {
		return bridge.Warned, there.Path + " cannot be compared: " + err.Error()
	}
	if came.sum != installed.sum {
		return bridge.Warned, fmt.Sprintf("%s (SHA-256 %s) is not %s (%s): one of them is of another version, or was exchanged", there.Path, installed.sum, own.Path, came.sum)
	}
	return bridge.Passed, there.Path + " is root's, and what belongs to this program"
}
