//go:build linux

package serve

import (
	"crypto/subtle"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox/inside/wire"
)

const (
	// meetTime is how long somebody at the door may take to show the key.
	meetTime = 5 * time.Second
	// clearTime is how long what an earlier gateway has left may take to end; then the sandbox ends.
	clearTime = 15 * time.Second
	// guests are those who may show a key at the same time.
	guests = 4
)

// door is where the next gateway comes into a sandbox that has outlived its own. Its socket lies in a directory of the
// gateway's user alone and was never inside; nothing that runs in here can name it, or get at its descriptor.
type door struct {
	listener int

	mu      sync.Mutex
	opened  bool
	terms   wire.Detach
	mounts  []wire.Mount
	gateway uint32        // its user, as it is seen from inside
	state   doorState     // whether somebody may come in
	cleared chan struct{} // closed when state is no longer doorClearing
	next    chan *os.File // who has come in
}

type doorState uint8

const (
	doorTaken    doorState = iota // a gateway is there
	doorClearing                  // one was, and what it had started is being ended
	doorFree
)

// newDoor is the door with the descriptor that this program was started with.
func newDoor(argument string) (*door, bool) {
	fd, err := strconv.Atoi(argument)
	if err != nil || fd < 3 {
		return nil, false
	}
	high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil || unix.SetNonblock(high, true) != nil {
		return nil, false
	}
	_ = unix.Close(fd) // it was copied
	return &door{listener: high, next: make(chan *os.File, 1)}, true
}

// greeted takes the terms of a greeting. The first ones open the door; later ones must be those, or whoever came in is not
// the gateway that knows them.
func (d *door) greeted(hello *wire.Hello, gateway uint32) error {
	terms := &hello.Detach
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened {
		if !same(&terms.Key, &d.terms.Key) || !same(&terms.Answer, &d.terms.Answer) {
			return wire.Violation("the greeting of another sandbox")
		}
		d.terms, d.mounts = *terms, hello.Mounts
		return nil
	}
	if terms.Alone == 0 {
		return nil // it ends with this gateway after all
	}
	// Who listens is whom the kernel names to those who connect: this process.
	if err := unix.Listen(d.listener, guests); err != nil {
		return os.NewSyscallError("listen", err)
	}
	d.opened, d.terms, d.mounts, d.gateway = true, *terms, hello.Mounts, gateway
	go d.accept()
	return nil
}

// lasts reports whether the sandbox goes on without a gateway.
func (d *door) lasts() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened
}

func same(a, b *[wire.NonceSize]byte) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

func (d *door) accept() {
	raw, err := os.NewFile(uintptr(d.listener), "door").SyscallConn()
	if err != nil {
		return
	}
	places := make(chan struct{}, guests)
	for {
		places <- struct{}{}
		fd := -1
		err := raw.Read(func(l uintptr) bool {
			fd, _, err = unix.Accept4(int(l), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return err != unix.EAGAIN
		})
		if err != nil {
			return
		}
		if fd < 0 { // whoever it was has gone, or there are no descriptors
			<-places
			continue
		}
		go func() {
			defer func() { <-places }()
			d.meet(fd)
		}()
	}
}

// meet lets the next gateway in, and nobody else.
func (d *door) meet(fd int) {
	guest := os.NewFile(uintptr(fd), "gateway")
	if !d.knows(fd) || !d.shown(guest) || !d.claim(guest) {
		_ = guest.Close() // nothing was promised
		return
	}
	d.next <- guest
}

// knows checks who connects. A process of this sandbox has a number here, and none outside has: a payload that got hold of
// the socket in some way could still not command its own first process. Other users of the machine are told apart as far
// as this namespace can; the directory and the key keep them out.
func (d *door) knows(fd int) bool {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	d.mu.Lock()
	defer d.mu.Unlock()
	return err == nil && peer.Pid == 0 && peer.Uid == d.gateway
}

// shown reads the key.
func (d *door) shown(guest *os.File) bool {
	var key [wire.NonceSize]byte
	if guest.SetDeadline(time.Now().Add(meetTime)) != nil {
		return false
	}
	if _, err := io.ReadFull(guest, key[:]); err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return same(&key, &d.terms.Key)
}

// claim takes the place of the gateway, if it is free: a second one replaces nobody while the first lives.
func (d *door) claim(guest *os.File) bool {
	d.mu.Lock()
	clearing := d.cleared
	if d.state == doorClearing {
		d.mu.Unlock()
		<-clearing
		d.mu.Lock()
	}
	free := d.state == doorFree
	if free {
		d.state = doorTaken
	}
	answer := d.terms.Answer
	d.mu.Unlock()
	if !free {
		_, _ = guest.Write([]byte{wire.DoorBusy}) // it is told, or has gone
		return false
	}
	_ = guest.SetDeadline(time.Now().Add(meetTime)) // it was possible before
	_, err := guest.Write(append([]byte{wire.DoorOpen}, answer[:]...))
	if err != nil || guest.SetDeadline(time.Time{}) != nil {
		d.set(doorFree)
		return false
	}
	return true
}

// set changes who may come in.
func (d *door) set(state doorState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == doorClearing {
		close(d.cleared)
	}
	if state == doorClearing {
		d.cleared = make(chan struct{})
	}
	d.state = state
}

// wait waits for the next gateway. nil: none came in time, or what runs here took more than it may.
func (d *door) wait() *os.File {
	d.mu.Lock()
	terms, mounts := d.terms, d.mounts
	d.mu.Unlock()
	d.set(doorFree)
	end := time.NewTimer(time.Duration(terms.Alone) * time.Second)
	defer end.Stop()
	over := make(chan struct{})
	defer close(over)
	select {
	case gateway := <-d.next:
		return gateway
	case <-watchAlone(&terms, mounts, over):
	case <-end.C:
	}
	return nil
}
