package settings

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// ParseUser reads "uid:gid", or "uid" for both. Names would mean something else in every image.
func ParseUser(text string) (sandbox.User, error) {
	uid, gid, both := strings.Cut(sandbox.Trim(text), ":")
	if !both {
		gid = uid
	}
	u, err := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err != nil || err2 != nil {
		return sandbox.User{}, sandbox.Errorf(sandbox.CodeConfig, "%q: write numbers, uid:gid", text)
	}
	return sandbox.User{UID: int(u), GID: int(g)}, nil
}

// ParseTmpfs reads "path" or "path:options", of which size= and exec mean something to every engine. workdir is where the
// workspace is; "" is WorkspaceTarget.
func ParseTmpfs(text, workdir string) (sandbox.Tmpfs, error) {
	target, options, _ := strings.Cut(sandbox.Trim(text), ":")
	t := sandbox.Tmpfs{Target: path.Clean(target)}
	if !path.IsAbs(target) || badTarget(t.Target) {
		return sandbox.Tmpfs{}, sandbox.Errorf(sandbox.CodeConfig, "%q: write an absolute path, and options after a colon", text)
	}
	if reservedTarget(t.Target, workdir) {
		// File tools would write into the workspace, and commands would see something else.
		return sandbox.Tmpfs{}, sandbox.Errorf(sandbox.CodeConfig, "%q: it would hide the workspace", text)
	}
	programs := ""
	for option := range strings.SplitSeq(options, ",") {
		switch key, value, _ := strings.Cut(sandbox.Trim(option), "="); key {
		case "size":
			n, err := Quantity(strconv.Quote(value)).Count()
			if err != nil || n == 0 {
				return sandbox.Tmpfs{}, sandbox.Errorf(sandbox.CodeConfig, "%q: size %q is no number of bytes", text, value)
			}
			t.Size = n
		case "exec", "noexec":
			if programs != "" && programs != key {
				// Whoever has written "noexec" must not get programs because of what stands beside it.
				return sandbox.Tmpfs{}, sandbox.Errorf(sandbox.CodeConfig, "%q: exec and noexec: write one of them", text)
			}
			programs, t.Exec = key, key == "exec"
		case "", "rw", "nosuid", "nodev":
		default:
			return sandbox.Tmpfs{}, sandbox.Errorf(sandbox.CodeConfig, "%q: option %q is not known: write size=…, exec", text, key)
		}
	}
	return t, nil
}

// ulimits are the names that container engines know.
var ulimits = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack",
}

// checkUlimit refuses what would only fail when a container is made. Blank values and names say nothing.
func checkUlimit(name, value string) error {
	if name == "" || value == "" {
		return nil
	}
	if !slices.Contains(ulimits, name) {
		return sandbox.Errorf(sandbox.CodeConfig, "%q is no limit: write one of %s", name, strings.Join(ulimits, ", "))
	}
	var numbers []int64
	for text := range strings.SplitSeq(value, ":") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < -1 || len(numbers) == 2 {
			return sandbox.Errorf(sandbox.CodeConfig, "%q is not a whole number, or two with a colon; -1 is no limit", value)
		}
		numbers = append(numbers, n)
	}
	if hard := numbers[len(numbers)-1]; hard >= 0 && (numbers[0] < 0 || numbers[0] > hard) {
		return sandbox.Errorf(sandbox.CodeConfig, "%q: the soft limit is above the hard one", value)
	}
	return nil
}
