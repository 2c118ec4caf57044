//go:build linux

package serve

import (
	"net"
	"slices"
	"testing"

	"github.com/toolward/toolward/sandbox/task"
)

func TestListenersOfTheKernelsList(t *testing.T) {
	for line, want := range map[string]listening{
		"   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 54321 1 0":  {3000, "54321", true},
		"   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 54321 1 0":  {8080, "54321", true},
		"   0: 020011AC:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 54321 1 0":  {8080, "54321", false},
		"0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 9": {80, "9", true},
		"0: 000080FE000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 1000 0 9": {80, "9", false},
		"0: 0100007F:0BB8 0100007F:A000 01 0:0 00:0 0 1000 0 9 1":                                               {}, // a connection
		"0: 0100007F:0000 00000000:0000 0A 0:0 00:0 0 1000 0 9 1":                                               {},
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode":      {},
		"0: 0100007F 00000000:0000 0A 0:0 00:0 0 1000 0 9 1":                                                    {},
		"": {},
	} {
		if got, ok := listener(line); got != want || ok != (want.port != 0) {
			t.Errorf("%s\n%+v, %v; want %+v", line, got, ok, want)
		}
	}
}

// A port of this program itself leads out of the sandbox, to the gateway's proxy: it is neither told nor connected to. Another one is both.
func TestOwnPortsAreNobodys(t *testing.T) {
	listen := func() (net.Listener, uint16) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l, uint16(l.Addr().(*net.TCPAddr).Port)
	}
	_, own := listen() // before anybody asks
	ownPorts()
	_, other := listen()
	told, _, err := ports(func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[uint16]task.Code{own: task.CodeDenied, other: ""} {
		if socket, err := dialLocal(port); task.CodeOf(err) != want {
			t.Errorf("port %d: %v, want %q", port, err, want)
		} else if err == nil {
			socket.Close()
		}
		if is := slices.ContainsFunc(told, func(p task.Port) bool { return p.Number == port }); is != (want == "") {
			t.Errorf("port %d told: %v", port, is)
		}
	}
}
