package docker

import (
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// contained says what shows that this process and the container engine see different file systems, because this process
// runs in a container itself; "" if nothing does.
func (e endpoint) contained() string {
	sign := containerSign()
	if sign != "" && e.neighbor() {
		return "" // the machine as a whole is a container or was made from an image: both are in it
	}
	return sign
}

func containerSign() string {
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Lstat(name); err == nil {
			return name
		}
	}
	data, _ := os.ReadFile("/proc/1/cgroup")
	for line := range strings.Lines(string(data)) {
		for _, sign := range []string{"/docker/", "/docker-", "/kubepods", "/libpod-", "/lxc/"} {
			if strings.Contains(line, sign) {
				return "/proc/1/cgroup"
			}
		}
	}
	return ""
}

// neighbor reports whether whoever listens on the socket is a process of this process namespace with the same root: a
// socket that was mounted from outside belongs to a process that has no number here.
func (e endpoint) neighbor() bool {
	path, local := strings.CutPrefix(e.host, "unix://")
	if !local {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil || peer.Pid <= 0 {
		return false
	}
	theirs, err := os.Stat("/proc/" + strconv.Itoa(int(peer.Pid)) + "/root/")
	if err != nil {
		return os.IsPermission(err) // what is mounted is compared after the start
	}
	ours, err := os.Stat("/")
	return err == nil && os.SameFile(ours, theirs)
}
