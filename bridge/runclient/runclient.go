// Package runclient is the whole of toolward-run: it stands in a guarded agent's shell where a command was, has the daemon
// start that command, and carries its streams, its signals and its end.
//
// The daemon never gets the client's own descriptors, and so nothing inside a sandbox can: it gets the ends of pipes that are
// made here. It runs before every command of an agent, so it imports little and allocates little; see package hookclient.
package runclient

import (
	"os"
	"strconv"
	"syscall"

	"github.com/toolward/toolward/bridge/hookclient"
)

// run is one run of the program.
type run struct {
	home     string
	ticket   string
	moves    bool // descriptor 3 is told where the shell is to be then
	daemon   int
	terminal bool
	rest     []byte // what was read of the daemon's words and not understood yet
	streams  streams
	raw      rawTerminal
	signals  chan os.Signal
	asked    asking
}

// Main runs the program with the arguments after its name and returns the exit status.
//
//	--home DIR TICKET [--cd]
func Main(args []string) int {
	r := &run{}
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--home" && i+1 < len(args):
			i++
			r.home = args[i]
		case arg == "--cd":
			r.moves = true
		case r.ticket == "" && plain(arg):
			r.ticket = arg
		default:
			return refuse("toolward-run is for commands that Toolward has let run, and not to be called by hand")
		}
	}
	if r.home == "" || r.ticket == "" {
		return refuse("toolward-run is for commands that Toolward has let run, and not to be called by hand")
	}
	return r.run()
}

// plain reports whether a ticket may stand in a header.
func plain(ticket string) bool {
	if ticket == "" || len(ticket) > 64 {
		return false
	}
	for _, c := range []byte(ticket) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// refuse says why nothing ran.
func refuse(why string) int {
	hookclient.WriteAll(2, []byte("toolward: "+why+"\n"))
	return ExitRefused
}

func (r *run) run() int {
	dir, err := os.Getwd()
	if err != nil {
		return refuse("this directory does not exist any more, so the command did not run: " + err.Error())
	}
	if r.daemon, err = hookclient.Dial(r.home); err != nil {
		return refuse("the command did not run: " + err.Error())
	}
	syscall.CloseOnExec(r.daemon)
	r.streams.look()
	r.terminal = isTerminal(0) && isTerminal(1)
	if !hookclient.WriteAll(r.daemon, r.head(dir)) {
		return refuse("the daemon stopped listening, so the command did not run")
	}
	if problem := r.answered(); problem != "" {
		return refuse(problem)
	}
	return r.follow()
}

// head is the request.
func (r *run) head(dir string) []byte {
	environ := 0
	for _, variable := range os.Environ() {
		environ += len(variable) + 1
	}
	b := make([]byte, 0, 512+len(dir)+environ)
	b = append(b, "POST "+Path+" HTTP/1.1\r\nHost: toolward\r\nConnection: close\r\n"+HeaderTicket+": "...)
	b = append(b, r.ticket...)
	b = append(b, "\r\n"+HeaderDirectory+": "...)
	b = hookclient.AppendEscaped(b, dir)
	b = append(b, "\r\n"+HeaderStreams+": "...)
	if !r.streams.empty || r.terminal {
		b = append(b, StreamInput)
	}
	if r.streams.merged || r.terminal {
		b = append(b, StreamMerged)
	}
	if r.terminal {
		cols, rows := terminalSize(0)
		b = append(b, "\r\n"+HeaderTerminal+": "...)
		b = strconv.AppendInt(b, int64(cols), 10)
		b = append(b, 'x')
		b = strconv.AppendInt(b, int64(rows), 10)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(environ), 10)
	b = append(b, "\r\n\r\n"...)
	for _, variable := range os.Environ() {
		b = append(b, variable...)
		b = append(b, 0)
	}
	return b
}

// answered reads the head of the daemon's answer.
func (r *run) answered() (problem string) {
	const gone = "the daemon stopped before it answered: the command did not run"
	for {
		for i := 0; i+4 <= len(r.rest); i++ {
			if string(r.rest[i:i+4]) == "\r\n\r\n" {
				ok := len(r.rest) > 12 && string(r.rest[9:12]) == "200"
				if r.rest = r.rest[i+4:]; !ok {
					return "the daemon refused toolward-run itself: is it of the same version? The command did not run"
				}
				return ""
			}
		}
		if len(r.rest) > 16<<10 || !r.more() {
			return gone
		}
	}
}

// more reads what the daemon has said meanwhile.
func (r *run) more() bool {
	buf := make([]byte, 4<<10)
	for {
		n, err := syscall.Read(r.daemon, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		r.rest = append(r.rest, buf[:n]...)
		return true
	}
}

// frame is what the daemon says next; false if it says nothing more.
func (r *run) frame() (says byte, payload []byte, ok bool) {
	for {
		if len(r.rest) >= headSize {
			size := int(r.rest[1])<<24 | int(r.rest[2])<<16 | int(r.rest[3])<<8 | int(r.rest[4])
			if size > MaxFrame {
				return 0, nil, false
			}
			if len(r.rest) >= headSize+size {
				says, payload = r.rest[0], r.rest[headSize:headSize+size]
				r.rest = r.rest[headSize+size:]
				return says, payload, true
			}
		}
		if !r.more() {
			return 0, nil, false
		}
	}
}

// follow does what the daemon says until the command has ended.
func (r *run) follow() int {
	var note []byte
	for {
		says, payload, ok := r.frame()
		switch {
		case !ok && r.streams.open:
			_ = syscall.Shutdown(r.daemon, syscall.SHUT_RDWR) // one that lives ends the command
			r.lastOutput()                                    // what it has written before is there
			r.raw.restore()
			return refuse("the daemon ended while the command ran. What the command had done by then is done")
		case !ok:
			return refuse("the daemon stopped before the command ran")
		case says == SaysRefused:
			r.raw.restore()
			return refuse(string(payload))
		case says == SaysStreams && !r.streams.open:
			r.catchSignals() // the first byte of output may be what somebody waits for to send one
			if problem := r.streams.handOver(r.daemon, r.terminal); problem != "" {
				return refuse(problem)
			}
			if r.terminal {
				r.raw.begin(0)
			}
			r.passSignals()
		case says == SaysNote:
			note = payload
		case says == SaysExit:
			exit, ok := parseExit(payload)
			if !ok {
				r.raw.restore()
				return refuse("the daemon's words are not understood: is it of the same version?")
			}
			return r.end(exit, note)
		}
	}
}

// end ends as the command did.
func (r *run) end(exit Exit, note []byte) int {
	if exit.Signal == 0 {
		r.asked.forget(exit.Heard)
	}
	r.lastOutput()
	r.raw.restore()
	hookclient.WriteAll(2, note)
	if why := r.streams.lost.Load(); why != nil {
		// A program learns that its output does not fit, and says so; this one's was told later, and of a pipe, or had ended by then.
		hookclient.WriteAll(2, []byte("toolward: not all of the command's output could be written: "+why.Error()+"\n"))
		if exit.Code == 0 && exit.Signal == 0 || exit.Signal == byte(syscall.SIGPIPE) {
			return 1
		}
	}
	if r.moves && exit.Dir != "" {
		hookclient.WriteAll(3, []byte(exit.Dir))
	}
	if exit.Signal != 0 {
		dieBy(syscall.Signal(exit.Signal))
		return 128 + int(exit.Signal) // a signal that does not kill this process
	}
	return int(exit.Code)
}
