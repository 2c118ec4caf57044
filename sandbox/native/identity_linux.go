package native

import (
	"os"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

const overflowID = 65534

// identityOf says who runs inside. It is never user 0 of the host: the files of /proc and /sys that belong to the
// machine belong to that user, in whatever namespace.
func (e *Engine) identityOf(user sandbox.User) identity {
	who := identity{hostUID: user.UID, hostGID: user.GID}
	if !e.root {
		who.hostUID, who.hostGID = os.Geteuid(), os.Getegid()
	}
	if who.hostUID <= 0 {
		who.hostUID = dedicatedUID()
	}
	if who.hostGID <= 0 {
		who.hostGID = who.hostUID
	}
	who.uid, who.gid = who.hostUID, who.hostGID
	if who.uid == overflowID {
		who.uid = 1000 // inside, overflowID is whoever has no number
	}
	if who.gid == overflowID {
		who.gid = 1000
	}
	return who
}

// dedicatedUID is who sandboxes of root are: the first of root's subordinate users, or else nobody.
func dedicatedUID() int {
	data, _ := os.ReadFile("/etc/subuid")
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(strings.TrimSpace(line), ":")
		if len(parts) == 3 && (parts[0] == "root" || parts[0] == "0") {
			if n, err := strconv.Atoi(parts[1]); err == nil && n > 0 {
				return n
			}
		}
	}
	return overflowID
}
