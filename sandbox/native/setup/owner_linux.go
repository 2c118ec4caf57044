package setup

import (
	"fmt"
	"os"
	"strconv"
)

// Owner says who the one user and the one group of a user namespace are.
type Owner struct{ UID, HostUID, GID, HostGID int }

// Give makes the owner that of the user namespace of a process, which has executed its program in it. It is for gateways that
// are not root. The way that [os.StartProcess] has, between fork and exec, is closed to them: until exec, a child shares the
// memory of a gateway that keeps its /proc entries from its own user, and so nobody but root may write the child's.
func (o Owner) Give(pid int) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	for _, file := range []struct{ name, text string }{
		{"setgroups", "deny"}, // or the kernel takes no group from an ordinary user
		{"uid_map", fmt.Sprintf("%d %d 1\n", o.UID, o.HostUID)},
		{"gid_map", fmt.Sprintf("%d %d 1\n", o.GID, o.HostGID)},
	} {
		if err := os.WriteFile(dir+file.name, []byte(file.text), 0); err != nil {
			return err
		}
	}
	return nil
}
