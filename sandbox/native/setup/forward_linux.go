package setup

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ForwardArgument stands before what starts the program inside where the forwarder shall run in it.
const ForwardArgument = "forward"

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
// them. It returns when it listens, so that the first command finds it.
func Forward() error {
	slots := make(chan struct{}, forwardConnections)
	for _, port := range forwardPorts {
		listener, err := listen(port)
		if err != nil {
			return fail("listen", decimal(uint64(port)), err)
		}
		go accept(listener, slots)
	}
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

func accept(listener *os.File, slots chan struct{}) {
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
			forward(os.NewFile(uintptr(fd), "caller"))
		}()
	}
}

// forward passes bytes both ways until one side has ended both.
func forward(caller *os.File) {
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
	ended := make(chan struct{}, 2)
	go pass(proxy, caller, ended)
	go pass(caller, proxy, ended)
	<-ended
	<-ended
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
