package runclient

import (
	"os"
	"os/signal"
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
	r.signals = make(chan os.Signal, 16)
	signal.Notify(r.signals, passed...)
}

// passSignals hands the command what was caught, and what comes.
func (r *run) passSignals() {
	go func() {
		for s := range r.signals {
			number, _ := s.(syscall.Signal)
			switch number {
			case syscall.SIGWINCH:
				if r.terminal {
					cols, rows := terminalSize(0)
					hookclient.WriteAll(r.daemon, told(TellsSize, uint32(cols)<<16|uint32(rows)))
				}
			case syscall.SIGTSTP:
				r.suspend()
			default:
				hookclient.WriteAll(r.daemon, told(TellsSignal, uint32(number)))
			}
		}
	}()
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

// dieBy ends this program by a signal, so that the shell sees what the command died of.
func dieBy(number syscall.Signal) {
	signal.Reset()
	_ = syscall.Kill(syscall.Getpid(), number)
	time.Sleep(time.Second) // it is on its way, unless it is one that does not kill
}
