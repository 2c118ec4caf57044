package setup

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EgressDir is where the directory of the gateway's proxy is inside, and EgressSocket its socket.
const (
	EgressDir    = "/run/toolward"
	EgressSocket = EgressDir + "/egress.sock"
)

// Ports of the forwarder on the loopback address: HTTP CONNECT and SOCKS5. Both lead to the one proxy, which sees from
// the first byte what is spoken.
var forwardPorts = [...]int{3128, 1080}

// forwardConnections bounds what programs inside can make the forwarder hold. More wait to be accepted.
const forwardConnections = 256

// Forward listens on the loopback address inside and passes connections on to the gateway's proxy, which decides about
// them. Of each target, "host:port", it listens at the same port, for programs that speak with no proxy. It returns when it
// listens, so that the first command finds it.
func Forward(targets []string) error {
	slots := make(chan struct{}, forwardConnections)
	for _, port := range forwardPorts {
		if err := serve(port, "", slots); err != nil {
			return err
		}
	}
	for _, target := range targets {
		port, err := strconv.ParseUint(target[strings.LastIndexByte(target, ':')+1:], 10, 16)
		if err != nil {
			return fail("read the port", target, err)
		}
		if err := serve(int(port), target, slots); err != nil {
			return err
		}
	}
	return nil
}

// serve listens at a port. What comes there is for a target; "" if it says so itself.
func serve(port int, target string, slots chan struct{}) error {
	listener, err := listen(port)
	if err != nil {
		return fail("listen", decimal(uint64(port)), err)
	}
	go accept(listener, target, slots)
	return nil
}

func listen(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "forward"), nil
}

func accept(listener *os.File, target string, slots chan struct{}) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return
	}
	for {
		slots <- struct{}{}
		fd := -1
		err := raw.Read(func(l uintptr) bool {
			fd, _, err = unix.Accept4(int(l), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return err != unix.EAGAIN
		})
		if err != nil {
			return
		}
		if fd < 0 { // the caller has hung up, or there are no descriptors: others may still be served
			<-slots
			continue
		}
		go func() {
			defer func() { <-slots }()
			forward(os.NewFile(uintptr(fd), "caller"), target)
		}()
	}
}

// forward passes bytes both ways until one side has ended both.
func forward(caller *os.File, target string) {
	defer caller.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return
	}
	proxy := os.NewFile(uintptr(fd), "proxy")
	defer proxy.Close()
	if unix.Connect(fd, &unix.SockaddrUnix{Name: EgressSocket}) != nil {
		return // no proxy: the caller sees a closed connection
	}
	if target != "" && !connect(proxy, target) {
		return // it was refused: the same
	}
	ended := make(chan struct{}, 2)
	go pass(proxy, caller, ended)
	go pass(caller, proxy, ended)
	<-ended
	<-ended
}

// maxAnswer bounds what is read of the proxy's answer before the bytes of the target begin.
const maxAnswer = 4096

// connect asks the proxy for a target, and reads its answer to the last byte and no further.
func connect(proxy *os.File, target string) bool {
	if _, err := proxy.WriteString("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"); err != nil {
		return false
	}
	var answer []byte
	for one := make([]byte, 1); len(answer) < maxAnswer; {
		if _, err := io.ReadFull(proxy, one); err != nil {
			return false
		}
		if answer = append(answer, one[0]); strings.HasSuffix(string(answer), "\r\n\r\n") {
			return strings.HasPrefix(string(answer), "HTTP/1.1 200 ")
		}
	}
	return false
}

func pass(to, from *os.File, ended chan<- struct{}) {
	_, err := io.Copy(to, from)
	if err != nil { // half a connection is of no use to anybody
		shutdown(from, unix.SHUT_RDWR)
		shutdown(to, unix.SHUT_RDWR)
	} else {
		shutdown(to, unix.SHUT_WR)
	}
	ended <- struct{}{}
}

func shutdown(socket *os.File, how int) {
	raw, err := socket.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) })
	}
}
