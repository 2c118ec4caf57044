package ticket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/toolward/toolward/bridge/runclient"
	"github.com/toolward/toolward/sandbox"
)

// watch hands a command what toolward-run says, and ends it when toolward-run has gone. It begins before the command does: to make a
// sandbox may take long, and what nobody waits for any more is not to be started at the end of it.
type watch struct {
	conn   *net.UnixConn
	cancel func() // gives up the start, or the command
	ends   *ends

	mu      sync.Mutex
	command Command        // nil: it has not started
	left    bool           // toolward-run has gone
	ended   bool           // the command
	heard   byte           // signals to end that the command got
	instead syscall.Signal // asked to end when no command ran, before it or after it; 0: none
	timer   *time.Timer
}

// handOver is how long the last output of a command may take, once there was a signal to end it.
const handOver = time.Second

// listen returns when toolward-run says no more.
func (w *watch) listen() {
	defer w.gone()
	var told [runclient.ToldSize]byte
	for {
		if _, err := io.ReadFull(w.conn, told[:]); err != nil {
			return
		}
		switch says, value := runclient.ParseTold(told); says {
		case runclient.TellsSignal:
			w.pass(syscall.Signal(value))
		case runclient.TellsSize:
			if command := w.now(); command != nil {
				_ = command.Resize(sandbox.Size{Cols: uint16(value >> 16), Rows: uint16(value)}) // a size is not worth an error
			}
		default:
			return
		}
	}
}

func (w *watch) now() Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.command
}

// begin has the command get what is said from now on.
func (w *watch) begin(command Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.command = command; w.left {
		_ = command.Signal(syscall.SIGKILL) // it may have ended
	}
}

// over is called when nothing is left to watch.
func (w *watch) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// pass hands the command a signal. Where none runs, one that ends programs ends what there is in its place: the start; or, after a while,
// the wait for somebody to read the last output, which is where the command itself would be without us, and die.
func (w *watch) pass(signal syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := w.command != nil && !w.ended
	if runs {
		runs = !errors.Is(w.command.Signal(signal), os.ErrProcessDone) // odd numbers are refused
	}
	switch signal {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
	default:
		return
	}
	switch {
	case runs:
		w.heard++
	case w.instead == 0:
		w.instead = signal
		if w.command == nil {
			w.cancel()
		} else {
			w.hurry()
		}
	}
}

// end is called when the command has ended, and its last output may still be on its way. One that has died of what it was asked by
// leaves nobody who would go on waiting.
func (w *watch) end(status sandbox.ExitStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.heard > 0 && status.Signal != 0 {
		w.hurry()
	}
}

func (w *watch) hurry() {
	if w.timer == nil {
		w.timer = time.AfterFunc(handOver, w.ends.close)
	}
}

// exit is how toolward-run is to end, if its command did so.
func (w *watch) exit(ended runclient.Exit) runclient.Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.instead != 0 {
		ended = runclient.Exit{Signal: byte(w.instead)}
	}
	ended.Heard = w.heard
	return ended
}

// gone: toolward-run was killed, also by SIGKILL, or has seen the end. Its command ends with it, at once.
func (w *watch) gone() {
	w.mu.Lock()
	w.left = true
	if w.command != nil {
		_ = w.command.Signal(syscall.SIGKILL) // it may have ended
	}
	w.mu.Unlock()
	w.cancel()
	w.ends.close() // whoever holds the other ends, and does not read, must not keep the sandbox in use for ever
}
