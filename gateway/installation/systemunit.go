package installation

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/hostdaemon"
)

// searchPath is where the gateway looks for the programs that commands name.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// systemUnit is the unit of systemd. The gateway sees the machine as the person's programs do, or it would judge other paths than theirs:
// no private /tmp, no hidden homes, no hidden processes. It can write to nothing but its state and the directory of its socket.
func systemUnit(person string) string {
	return `# Toolward, a tool firewall for AI agents: the gateway for the agents of one person, under a uid of its own.
# Written by: toolward install --system. Taken back by: toolward uninstall --system.
[Unit]
Description=Toolward, a tool firewall for AI agents
After=network.target

[Service]
Type=exec
User=` + SystemUser + `
Group=` + SystemUser + `
StateDirectory=toolward
StateDirectoryMode=0700
RuntimeDirectory=toolward
RuntimeDirectoryMode=0755
Environment=TOOLWARD_HOME=` + SystemState + ` PATH=` + searchPath + `
ExecStart=` + SystemProgram + ` up --for ` + person + `
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
UMask=0077
LimitCORE=0

# Looking at paths of every user is its only right.
CapabilityBoundingSet=CAP_DAC_READ_SEARCH
AmbientCapabilities=CAP_DAC_READ_SEARCH
NoNewPrivileges=yes

ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=no
ProtectProc=default
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @mount @obsolete @raw-io @reboot @swap

[Install]
WantedBy=multi-user.target
`
}

// HasSystemd reports whether systemd runs this machine.
func HasSystemd() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// ByHand is what root types to start the gateway where there is no systemd: what the unit says.
func (s *System) ByHand() string {
	return "install -d -m 0755 -o " + SystemUser + " -g " + SystemUser + " " + systemRun + " && cd / && " +
		"env -i TOOLWARD_HOME=" + SystemState + " PATH=" + searchPath + " " +
		"setpriv --reuid=" + SystemUser + " --regid=" + SystemUser + " --clear-groups --no-new-privs " +
		"--inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search " +
		SystemProgram + " up --for " + s.Person
}

// Start has systemd run the gateway; anew, if its program or its unit is another now.
func (s *System) Start(ctx context.Context, anew bool) error {
	verb := "start"
	if anew {
		verb = "restart"
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "toolward.service"}, {verb, "toolward.service"}} {
		if err := runs(ctx, "systemctl", args...); err != nil {
			return err
		}
	}
	return nil
}

// SetupCode waits for the code that the first passphrase is set with; "" if there is one, or the gateway does not say. Only root and the
// gateway can read it.
func (s *System) SetupCode(ctx context.Context, patience time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(filepath.Join(SystemState, gateway.SetupCodeFile)); err == nil && len(data) > 0 && len(data) < 64 {
			return strings.TrimSpace(string(data))
		}
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
	}
}

// Uninstall takes back what Install has made. Without purge the record, its state and the user whose they are stay: another program
// that got the user's number would get them, too.
func (s *System) Uninstall(ctx context.Context, purge bool) error {
	if HasSystemd() && s.has(madeUnit) {
		if err := runs(ctx, "systemctl", "disable", "--now", "toolward.service"); err != nil && exists(SystemUnit) {
			return err
		}
	}
	if pid := runningDaemon(); pid > 0 {
		return errors.New("the gateway still runs, as process " + strconv.Itoa(pid) + ": end it first")
	}
	for _, made := range []struct{ word, path string }{{madeUnit, SystemUnit}, {madeDaemon, hostdaemon.File}, {madeProgram, SystemProgram}} {
		if err := s.takeBack(made.word, func() error { return os.Remove(made.path) }); err != nil {
			return err
		}
	}
	_ = os.Remove(filepath.Dir(hostdaemon.File)) // unless it holds something else
	if uid, _, there, err := account(); err == nil && there {
		if info, err := os.Lstat(systemRun); err == nil && ownerOf(info) == uid {
			_ = os.RemoveAll(systemRun)
		}
	}
	if HasSystemd() {
		_ = runs(ctx, "systemctl", "daemon-reload")
	}
	if !purge {
		return nil
	}
	err := s.takeBack(madeState, func() error { return os.RemoveAll(SystemState) })
	if err == nil {
		err = s.takeBack(madeUser, func() error { return runs(ctx, "userdel", SystemUser) })
	}
	if err == nil {
		err = os.Remove(systemMade)
		_ = os.Remove(filepath.Dir(systemMade)) // unless it holds something else
	}
	return err
}

// takeBack removes what was made here, and what is no longer there counts as removed.
func (s *System) takeBack(word string, remove func() error) error {
	if !s.has(word) {
		return nil
	}
	if err := remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.Made = slices.DeleteFunc(s.Made, func(m string) bool { return m == word })
	return s.keep()
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// runningDaemon is a process of the gateway's user that runs its program; 0 if there is none.
func runningDaemon() int {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		program, err := os.Readlink(dir + "/exe")
		if pid, bad := strconv.Atoi(filepath.Base(dir)); err == nil && bad == nil && strings.TrimSuffix(program, " (deleted)") == SystemProgram && pid != os.Getpid() {
			info, err := os.ReadFile(dir + "/cmdline")
			if err == nil && strings.Contains(string(info), "\x00up\x00--for\x00") {
				return pid
			}
		}
	}
	return 0
}
