package hostdaemon

import "golang.org/x/sys/unix"

// File names the daemon of a system install: one line, "uid NUMBER socket PATH". It is root's, and so is every directory
// above it. /etc is a link here.
const File = "/private/etc/toolward/daemon"

// peer is the user who began to listen at the other end.
func peer(fd int) (uid uint32, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
