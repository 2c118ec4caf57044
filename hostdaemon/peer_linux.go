package hostdaemon

import "syscall"

// File names the daemon of a system install: one line, "uid NUMBER socket PATH". It is root's, and so is every directory
// above it.
const File = "/etc/toolward/daemon"

// peer is the user who began to listen at the other end.
func peer(fd int) (uid uint32, err error) {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
