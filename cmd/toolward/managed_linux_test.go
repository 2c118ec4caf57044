package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// machineScript makes an empty machine in a namespace of its own: root, and alice with a home.
const machineScript = `set -e
for dir in /etc /home /usr/local /var/lib /root /mnt; do mount -t tmpfs -o mode=755 none $dir; done
echo root:x:0:0::/root:/bin/sh >/etc/passwd; echo alice:x:64123:64123::/home/alice:/bin/sh >>/etc/passwd
mkdir /home/alice; chown 64123:64123 /home/alice
L=/usr/local/libexec/toolward S=/etc/claude-code/managed-settings.json
seen() { find /usr/local /var/lib /etc/claude-code /home/alice /root -mindepth 1 -printf '%U:%G %m %y %p\n' 2>/dev/null | sort -k 4; }
managed() { toolward install claude-code --managed --yes "$@" 2>&1; }
unmanaged() { toolward uninstall claude-code --managed --yes "$@" 2>&1; }
`

// onEmptyMachine runs a script as root on such a machine, and returns what it prints.
func onEmptyMachine(t *testing.T, script string, env ...string) string {
	t.Helper()
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		if live.All() {
			t.Fatalf("TOOLWARD_LIVE=all, but there is no namespace for an /etc of its own: %v: %s", err, out)
		}
		t.Skipf("only root can have an /etc of its own: %v: %s", err, out)
	}
	programs := filepath.Dir(live.NewQuickMachine(t, "").Program("toolward"))
	c := exec.Command("unshare", "--mount", "sh", "-c", machineScript+script)
	c.Env = append([]string{"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=/root", "PROGRAMS=" + programs}, env...)
	c.Dir = "/"
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

const alice = "SUDO_UID=64123"

func TestWhatEverybodyRunsIsRoots(t *testing.T) {
	out := onEmptyMachine(t, `managed >/dev/null
seen; grep -o '"command".*\|"/home[^"]*"' $S | sort -u
for name in toolward-hook toolward-run toolward-inside; do cmp $PROGRAMS/$name $L/$name; done
echo again; managed; echo away; unmanaged >/dev/null; seen`, alice)
	for _, line := range []string{
		"0:0 644 f /etc/claude-code/managed-settings.json\n", "0:0 755 d /usr/local/libexec\n", "0:0 755 d /usr/local/libexec/toolward\n",
		"0:0 755 f /usr/local/libexec/toolward/toolward-hook\n", "0:0 755 f /usr/local/libexec/toolward/toolward-inside\n",
		"0:0 755 f /usr/local/libexec/toolward/toolward-run\n", `"command": "/usr/local/libexec/toolward/toolward-hook"`, `"/home/alice/.toolward"`,
	} {
		if !strings.Contains(out, line) {
			t.Errorf("not seen: %s", line)
		}
	}
	installed, rest, _ := strings.Cut(out, "again\n")
	if strings.Contains(installed, " /home/alice/") || strings.Contains(installed, " /root/") {
		t.Error("root wrote into a home")
	}
	if !strings.Contains(rest, "already installed") || !strings.HasSuffix(rest, "away\n") {
		t.Error("a second time something was done, or something is left behind")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// What was there before is there after it, byte for byte, and what somebody put there meanwhile stays.
func TestUninstallingForEverybodyLosesNothing(t *testing.T) {
	out := onEmptyMachine(t, `mkdir -p /etc/claude-code $L; printf '{\n\t"model"   : "x" }' >$S; chmod 640 $S; echo mine >$L/other
seen >/mnt/before; cp $S /mnt/settings; managed >/dev/null; grep -q toolward-hook $S; unmanaged >/dev/null; seen | diff /mnt/before - && cmp $S /mnt/settings && echo same
managed >/dev/null; echo changed >>$L/toolward-run; unmanaged >/dev/null; ls $L`, alice)
	if !strings.HasSuffix(out, "same\nother\ntoolward-run\n") {
		t.Errorf("%s", out)
	}
}

// Root follows nobody else: whatever could lead it elsewhere, or have it lose or publish a file, ends the installation before it
// begins.
func TestRootIsLedNowhere(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"libexec is a link":           {"ln -s /home/alice /usr/local/libexec", "/usr/local/libexec is no directory, or a link"},
		"libexec is another's":        {"mkdir -p $L; chown 64123 /usr/local/libexec", "/usr/local/libexec does not belong to root"},
		"others write the directory":  {"mkdir -p $L; chmod 777 $L", "$L can be written by others"},
		"the directory is a link":     {"mkdir -p /usr/local/libexec; ln -s /home/alice $L", "$L"},
		"a copy is a link":            {"mkdir -p $L; ln -s /etc/passwd $L/toolward-run", "move it away"},
		"a copy is somebody's":        {"mkdir -p $L; echo mine >$L/toolward-hook; chmod 755 $L/toolward-hook", "move it away"},
		"the record is another's":     {"mkdir -p /var/lib/toolward-install; echo '{}' >/var/lib/toolward-install/programs.json; chown 64123 /var/lib/toolward-install/programs.json", "programs.json does not belong to root"},
		"the record's place is moved": {"mkdir /home/alice/r; ln -s /home/alice/r /var/lib/toolward-install", "toolward-install"},
		"others write the settings":   {"mkdir -p /etc/claude-code; echo '{}' >$S; chmod 666 $S", "$S can be written by others"},
		"settings lead elsewhere":     {"mkdir -p /etc/claude-code; echo '{}' >/home/alice/s; ln -s /home/alice/s $S", "/home/alice"},
		"the hook is a link":          {"chmod 600 /etc/passwd; ln -s /etc/passwd /home/alice/hook; OPTION=--hook=/home/alice/hook", "read the program"},
		"the hook is no program":      {"echo secret >/home/alice/hook; OPTION=--hook=/home/alice/hook", "is no program"},
		"the hook is a pipe":          {"mkfifo -m 755 /home/alice/hook; OPTION=--hook=/home/alice/hook", "is no program"},
		"presets":                     {"OPTION=--preset=workspace", "presets are each person"},
		"no such user":                {"export SUDO_UID=99", "SUDO_UID"},
		"no number":                   {"export SUDO_UID=alice", "SUDO_UID"},
		"a home of somebody else":     {"chown 1 /home/alice", "no directory of alice"},
		"no home":                     {"rmdir /home/alice", "/home/alice"},
		"a home that is a link":       {"rmdir /home/alice; ln -s /root /home/alice", "no directory of alice"},
		"root without a gateway":      {"unset SUDO_UID", "root has no gateway"},
		"the daemon's file is odd":    {"mkdir /etc/toolward; echo x >/etc/toolward/daemon; chmod 666 /etc/toolward/daemon", "/etc/toolward/daemon can be written by others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := onEmptyMachine(t, c.script+"\nseen >/mnt/before; echo says "+c.says+"; if managed $OPTION; then echo installed; fi; seen | diff /mnt/before - || echo touched", alice)
			head, rest, _ := strings.Cut(out, "\n")
			if says := strings.TrimPrefix(head, "says "); !strings.Contains(rest, says) || strings.HasSuffix(out, "installed\n") || strings.HasSuffix(out, "touched\n") {
				t.Errorf("%s", out)
			}
		})
	}
}

func TestOnlyRootInstallsForEverybody(t *testing.T) {
	out := onEmptyMachine(t, `for what in install uninstall; do
setpriv --reuid 64123 --regid 64123 --clear-groups env HOME=/home/alice toolward $what claude-code --managed --yes 2>&1 || echo $?; done; seen`)
	if strings.Count(out, "only root can change them") != 2 || !strings.Contains(out, "hint: sudo toolward install claude-code --managed\n1\n") || strings.Count(out, "\n") != 6 {
		t.Errorf("%s", out)
	}
}

// Without sudo the person is root, if root has a gateway; and who names a home means it.
func TestWhoseGatewayEverybodysHookAsks(t *testing.T) {
	for script, home := range map[string]string{
		"mkdir /root/.toolward; managed":                                 "/root/.toolward",
		"mkdir /srv/g; managed --home /srv/g; rmdir /srv/g":              "/srv/g",
		"export SUDO_UID=64123 TOOLWARD_HOME=/home/alice/other; managed": "/home/alice/other",
		"export SUDO_UID=0; chmod 700 /root; managed":                    "/root/.toolward",
	} {
		if out := onEmptyMachine(t, script+`; grep -A1 -e --home $S`); !strings.Contains(out, `"`+home+`"`) {
			t.Errorf("%s: not %s\n%s", script, home, out)
		}
	}
}

func TestDoctorComparesWhatWasInstalledForEverybody(t *testing.T) {
	for spoil, want := range map[string]string{
		"true":                         "ok +toolward-run: $L/toolward-run is root's, and what belongs to this program",
		"echo x >>$L/toolward-run":     "warning +toolward-run: $L/toolward-run .SHA-256 .*exchanged",
		"chmod 4755 $L/toolward-run":   "failed +toolward-run: $L/toolward-run has mode",
		"chmod 700 $L/toolward-inside": "failed +toolward-inside: $L/toolward-inside has mode",
		"chmod 775 $L/toolward-run":    "failed +toolward-run: .*can be written by others",
		"chown 64123 $L/toolward-hook": "failed +toolward-hook: .*does not belong to root",
		"chown 64123 $L":               "failed +toolward-hook: .*$L does not belong to root",
		"rm $L/toolward-run":           "failed +toolward-run: $L/toolward-run is missing",
		"sed -i s,$L,/home/alice, $S; cp $PROGRAMS/toolward-hook /home/alice/; chown 64123 /home/alice/toolward-hook": "failed +claude-code program: .*/home/alice",
	} {
		t.Run(spoil, func(t *testing.T) {
			out := onEmptyMachine(t, "managed >/dev/null; "+spoil+"; toolward doctor >/mnt/out 2>&1 || true; grep -E \""+want+"\" /mnt/out && echo found || cat /mnt/out", alice)
			if !strings.HasSuffix(out, "found\n") {
				t.Errorf("not %s\n%s", want, out)
			}
		})
	}
}

// An installation mends what was changed.
func TestInstallingAgainMendsTheCopies(t *testing.T) {
	out := onEmptyMachine(t, `managed >/dev/null; chmod 777 $L/toolward-run; chown 64123 $L/toolward-hook; rm $L/toolward-inside; managed >/dev/null
stat -c '%u:%g %a %n' $L/*; cmp $PROGRAMS/toolward-inside $L/toolward-inside; unmanaged >/dev/null; ls -d $L 2>&1 || true`, alice)
	if strings.Count(out, "0:0 755 ") != 3 || !strings.Contains(out, "No such file") {
		t.Errorf("%s", out)
	}
}
