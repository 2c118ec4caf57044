package escape

import "strings"

// An expectation is what may come of the attempts whose names begin with a prefix; the longest prefix counts. An outcome
// is the name of an error, or a word of the probe's.
type expectation struct {
	prefix string
	native string // acceptable outcomes, separated by spaces
	docker string // the same where it differs; "" is as native
}

// landlock is what differs without namespaces (level L1), where Landlock and the filter refuse what mounts would hide.
// Processes of the host can be seen, by name and arguments.
var landlock = map[string]string{
	"1 create in": "EACCES", "24 open": "EACCES ENOENT", "3 host's": "EACCES ENOENT", "3 host's /etc/shadow": "EACCES",
	"3 host's /etc/gshadow": "EACCES", "3 host's /root": "EACCES", "3 host's /home": "EACCES", "3 host's /boot": "EACCES ENOENT",
	"3 host's /var/lib": "EACCES", "3 host's /sys/kernel": "EACCES",
	"4 connect": "EAFNOSUPPORT", "5 abstract socket": "EAFNOSUPPORT", "18": "EAFNOSUPPORT",
	"18 TCP fd00::1": "EAFNOSUPPORT", "18 TCP to the host's 127.0.0.1": "EAFNOSUPPORT", "19": "EAFNOSUPPORT",
	// What every user of the machine may read stays so, and others' processes are seen.
	"11 read /proc/kallsyms": "ok empty EACCES EPERM ENOENT", "15": "foreign", "16 signal a host process": "EPERM",
	"16 pidfd of a host process": "ok",
	// The names of the user's keys, where a login has made some; what is in them is read by calls that the filter refuses.
	"11 read /proc/keys": "ok empty EACCES EPERM ENOENT",
	// The host's directories stand where they are; what is in them is refused by Landlock or by their rights.
	"1 link a program": "EXDEV EACCES EPERM", "1 rename a program": "EXDEV EACCES", "1 open a program": "EACCES",
	"1 chmod a program": "EPERM", "12 /proc/PID/root": "EACCES", "24 open /dev": "EACCES ENOENT", "24 open /dev/console": "EACCES ENOENT",
	"x TIOCSTI on a terminal": "EPERM", "x be killed last": "EACCES EPERM", "x map user 0": "EACCES EPERM",
	// The limits of a user are counted with what the sandbox takes: it is that user.
	"x watchers of files": "some all",
}

// DockerRoot is the table of a command that is root in its container, without any capability, because its daemon is root.
const DockerRoot = "docker root"

// containerRoot is what differs there: what belongs to the container's root is its own. Its /dev is a file system of the container, the
// process of number 1 is the one that waits in it, and it changes neither its user nor an owner by naming what is so already.
var containerRoot = map[string]string{
	"1 create in /dev": "ok", "12 /proc/1/fd": "ok", "25 setuid(0)": "ok", "25 chown to root": "ok",
}

// expectations is the escape battery. Its numbers are those of the specification; x is beyond it.
var expectations = []expectation{
	{"1 create in", "EROFS", "EROFS ENOENT EACCES"},
	{"3 host's", "ENOENT", ""},
	// Directories that images have; what is in them is the image's.
	{"3 host's /etc/shadow", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /etc/gshadow", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /root", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /home", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /boot", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /var/lib", "ENOENT", "ENOENT EACCES ok"},
	{"3 host's /sys/kernel", "ENOENT", "ENOENT EACCES ok"},
	{"4 connect", "ENOENT", ""},
	{"5 abstract socket", "ECONNREFUSED EPERM", ""},
	{"6", "EPERM", ""},
	{"7", "EPERM ENOSYS", ""},
	{"8", "EPERM", ""},
	{"8 clone3", "ENOSYS", ""},
	{"9", "EPERM EACCES", ""},
	{"10", "EROFS EACCES ENOENT", ""},
	{"11", "empty EACCES EPERM ENOENT", ""},
	{"11 read /proc/keys", "empty EACCES EPERM ENOENT", ""},
	{"11 read /proc/kallsyms", "empty EACCES EPERM ENOENT", "ok empty EACCES EPERM ENOENT"}, // addresses are hidden anyway
	{"12", "EACCES", "EACCES EPERM"},
	{"13", "EPERM", ""},
	{"15", "own", ""},
	{"16 signal a host process", "ESRCH", ""},
	{"16 pidfd of a host process", "ESRCH EINVAL", ""},
	{"16 signal everything", "ok ESRCH", ""}, // what is there is the sandbox's
	{"17", "EPERM EAFNOSUPPORT", ""},
	{"18", "ENETUNREACH", "ENETUNREACH EADDRNOTAVAIL"},
	{"18 TCP fd00::1", "ENETUNREACH EADDRNOTAVAIL", "ENETUNREACH EADDRNOTAVAIL EAFNOSUPPORT"},
	{"18 TCP to the host's 127.0.0.1", "ECONNREFUSED EINPROGRESS", ""}, // the sandbox's own; the host's listener is watched
	{"19", "ENETUNREACH", ""},
	{"20", "EPERM ENOSYS", ""},
	{"21", "EPERM", "EPERM ENOSYS"},
	{"22", "EPERM", "EPERM ENOSYS"},
	{"23", "EPERM", ""},
	{"24 block", "EPERM", "EPERM EACCES"},
	{"24 char", "EPERM", "EPERM EACCES"},
	{"24 open", "ENOENT", "ENOENT EPERM EACCES"},
	{"24 open /dev/console", "ENOENT", "ENOENT EPERM EACCES EIO"},
	{"25", "EPERM", "EPERM EINVAL"},
	{"25 setuid bit", "no-gain", ""},
	{"25 setuid(0)", "EPERM EINVAL", ""}, // EINVAL: there is no such user inside
	{"25 setgroups", "EPERM EINVAL", ""},
	{"26", "absent no-gain", ""},
	{"30", "EPERM EROFS ENOENT EACCES", ""},
	{"x", "EPERM", "EPERM ENOSYS"},
	{"1 link a program", "EXDEV", "EXDEV EPERM"},
	{"1 rename a program", "EXDEV", "EXDEV EROFS"},
	{"1 open a program", "EROFS EACCES", "EROFS EACCES ETXTBSY"}, // one that runs is refused before the mount is looked at
	{"1 chmod a program", "EROFS", "EROFS EPERM"},
	{"12 /proc/PID/root", "ENOENT", ""},
	{"25 setuid program in memory", "no-gain", ""},
	{"25 chown to root", "EPERM EINVAL", ""},
	{"25 attribute", "EPERM EOPNOTSUPP", ""},
	// The label of a policy that nobody has loaded is an attribute like others, for whoever owns the file.
	{"25 attribute security.selinux", "EPERM EOPNOTSUPP ok", ""},
	{"x be killed last", "EACCES", ""},
	{"x map user 0", "EPERM EACCES", ""},
	{"x make a file immutable", "EPERM ENOTTY EOPNOTSUPP", ""},
	// The filter ends programs with other numbers of system calls; a kernel may have none of them.
	{"x unshare by a program of 32 bits", "SIGSYS ENOEXEC", ""},
	{"x a call by the numbers of x32", "SIGSYS ENOEXEC", "SIGSYS ENOEXEC refused"},
	{"x memfd_secret", "ENOSYS", "ENOSYS EPERM"},
	{"x statmount", "ENOSYS", "ENOSYS EPERM"},
	{"x request_key", "EPERM", ""},
	{"x fanotify_init", "EPERM", ""},
	// The kernel counts them for each user; in a container they are the host's user's.
	{"x watchers of files", "some", "some all"},
}

// expected returns what may come of an attempt; nil if nobody expects it.
func expected(table, attempt string) []string {
	if other, ok := containerRoot[attempt]; ok && table == DockerRoot {
		return strings.Fields(other)
	}
	var best *expectation
	for i := range expectations {
		e := &expectations[i]
		if strings.HasPrefix(attempt, e.prefix) && (best == nil || len(e.prefix) > len(best.prefix)) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	if (table == "docker" || table == DockerRoot) && best.docker != "" {
		return strings.Fields(best.docker)
	}
	if other, ok := landlock[best.prefix]; ok && table == "landlock" {
		return strings.Fields(other)
	}
	return strings.Fields(best.native)
}
