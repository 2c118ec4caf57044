package runclient

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/toolward/toolward/bridge/hookclient"
)

// passed are the signals that the command gets in the place of this program.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGWINCH,
}

// catchSignals keeps signals from ending this program, or from being lost, before there is a command that gets them.
func (r *run) catchSignals() {
	r.signals, r.asked.first = make(chan os.Signal, 16), make(chan syscall.Signal, 1)
	for _, s := range passed {
		if !signal.Ignored(s) { // nohup, or a job in the background, whose command would not notice it either
			signal.Notify(r.signals, s)
		}
	}
}

// passSignals hands the command what was caught, and what comes.
func (r *run) passSignals() {
	go func() {
		for s := range r.signals {
			number, _ := s.(syscall.Signal)
			switch {
			case number == syscall.SIGWINCH:
				if r.terminal {
					cols, rows := terminalSize(0)
					hookclient.WriteAll(r.daemon, told(TellsSize, uint32(cols)<<16|uint32(rows)))
				}
			case number == syscall.SIGTSTP:
				r.suspend()
			default:
				r.asked.note(number)
				hookclient.WriteAll(r.daemon, told(TellsSignal, uint32(number)))
			}
		}
	}()
}

// asking is what this program was sent to end its command.
type asking struct {
	mu    sync.Mutex
	times byte
	first chan syscall.Signal
}

func (a *asking) note(number syscall.Signal) {
	switch number {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.times++
		select {
		case a.first <- number:
		default: // one is enough
		}
	}
}

// forget leaves what a command has survived that has heard of so many.
func (a *asking) forget(heard byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times == heard && heard > 0 {
		<-a.first
	}
}

// handOver is how long the last output of a command may take, once it was to end.
const handOver = time.Second

// lastOutput waits for what the command has written, which may be for ever: somebody may read it later. Without us the command itself would
// wait so, and die of a signal.
func (r *run) lastOutput() {
	done := make(chan struct{})
	go func() {
		r.streams.wait()
		close(done)
	}()
	select {
	case <-done:
	case number := <-r.asked.first:
		select {
		case <-done:
		case <-time.After(handOver):
			r.raw.restore()
			dieBy(number)
		}
	}
}

// suspend stops the command and this program with it, and goes on with both.
func (r *run) suspend() {
	hookclient.WriteAll(r.daemon, told(TellsSignal, uint32(syscall.SIGTSTP)))
	r.raw.restore()
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) // it goes on here
	if r.terminal {
		r.raw.begin(0)
	}
	hookclient.WriteAll(r.daemon, told(TellsSignal, uint32(syscall.SIGCONT)))
}

// kills reports whether a signal ends who does nothing about it. It stops a sandbox that says its command died of SIGSTOP: the shell
// would wait for this program for ever.
func kills(number syscall.Signal) bool {
	switch number {
	case 0, syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGURG, syscall.SIGWINCH:
		return false
	}
	return true
}
