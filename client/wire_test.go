package client_test

import (
	"net"
	"sync"
)

// wire carries bytes between a client and a gateway, until it is cut.
type wire struct {
	Address string
	door    net.Listener
	to      string
	busy    sync.WaitGroup

	mu             sync.Mutex
	open           map[net.Conn]bool
	deaf, dumb     bool // what the gateway sends, what the client sends, is lost
	closed, barred bool
}

func newWire(address string) *wire {
	w := &wire{door: got(net.Listen("tcp", "127.0.0.1:0")), to: address[len("ws://"):], open: map[net.Conn]bool{}}
	w.Address = "ws://" + w.door.Addr().String()
	w.busy.Go(w.accept)
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.door.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil || !w.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		w.busy.Go(func() { w.carry(near, far, &w.deaf) })
		w.busy.Go(func() { w.carry(far, near, &w.dumb) })
	}
}

func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if !w.closed && !w.barred {
			w.open[c] = true
		}
	}
	return !w.closed && !w.barred
}

// carry copies until either end is closed; nothing arrives while lost is set.
func (w *wire) carry(to, from net.Conn, lost *bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		drop := *lost
		w.mu.Unlock()
		if n > 0 && !drop {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// lose makes what either end sends vanish, and bars new connections.
func (w *wire) lose(fromGateway, fromClient bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf, w.dumb, w.barred = fromGateway, fromClient, true
}

// mend cuts all connections and carries everything from then on.
func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf, w.dumb, w.barred = false, false, false
	w.cut()
}

// cut ends all connections. The caller holds the lock.
func (w *wire) cut() {
	for c := range w.open {
		c.Close()
	}
	clear(w.open)
}

func (w *wire) Close() {
	w.mu.Lock()
	w.closed = true
	w.cut()
	w.mu.Unlock()
	w.door.Close()
	w.busy.Wait()
}
