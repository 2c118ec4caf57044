// Package hookclient is the whole of toolward-hook: it carries one event of a guarded agent to the daemon and gives
// the agent exactly the daemon's answer.
//
// A hook that crashes, hangs or prints one wrong byte is an approval in most clients, so the package has one rule:
// whatever is not a complete answer of the daemon ends in exit status 2 with a reason on standard error. That is a
// refusal in every client we know; exit status 1, or 2 without a reason, is not.
//
// It runs before every tool call, so it imports nothing that takes time to start: no net, no fmt, no encoding/json.
package hookclient

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// The program's limits.
const (
	// MaxInput is the largest event that is carried, in bytes. Outcomes of big writes hold the file twice.
	MaxInput = 64 << 20
	// MaxAnswer is the largest answer that is taken, in bytes.
	MaxAnswer = 64 << 20
	// DefaultDeadline ends a hook whose installation did not say how long the client waits for it.
	DefaultDeadline = 28 * time.Second
)

// ExitRefuse is the exit status that every client understands as "do not run the tool".
const ExitRefuse = 2

// Hook is one run of the program.
type Hook struct {
	Client   string        // "claude-code"
	Event    string        // the client's name of the event, from the installed command line
	Home     string        // Toolward's home; the socket is in it unless the machine has a daemon
	Deadline time.Duration // ends the run; below the client's own time-out
	Env      func(string) string
	In       int // file descriptors
	Out      int
	Err      int

	answered atomic.Bool
}

// Main runs the program with the arguments after its name and returns the exit status.
//
//	<client> [<event>] [--home DIR] [--deadline SECONDS]
func Main(args []string) (exit int) {
	h := &Hook{Deadline: DefaultDeadline, Env: os.Getenv, In: 0, Out: 1, Err: 2}
	if problem := h.parse(args); problem != "" {
		return h.refuse(problem)
	}
	return h.Run()
}

// parse reads the command line that install wrote.
func (h *Hook) parse(args []string) (problem string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--home" && i+1 < len(args):
			i++
			h.Home = args[i]
		case arg == "--deadline" && i+1 < len(args):
			i++
			seconds, ok := parseNumber(args[i])
			if !ok || seconds == 0 {
				return "its installed command has a wrong --deadline; repair it with: toolward install " + h.Client
			}
			h.Deadline = time.Duration(seconds) * time.Second
		case arg != "" && arg[0] != '-' && h.Client == "":
			h.Client = arg
		case arg != "" && arg[0] != '-' && h.Event == "":
			h.Event = arg
		default:
			return "its installed command has an argument that it does not know (" + arg + "); repair it with: toolward install " + h.Client
		}
	}
	if !isName(h.Client) || h.Event != "" && !isName(h.Event) {
		return "its installed command does not name the client; repair it with: toolward install"
	}
	return ""
}

// Run carries the event and gives the answer. The exit status is 0 or 2.
func (h *Hook) Run() (exit int) {
	// The clock runs while the client is slow to write, too: a hook that is killed by the client's time-out has
	// answered nothing, and in several clients the tool then runs.
	timer := time.AfterFunc(h.Deadline, func() {
		syscall.Exit(h.refuse("nobody decided in time. The call did not run; do not repeat it now"))
	})
	defer timer.Stop()
	defer func() {
		if v := recover(); v != nil {
			exit = h.refuse("the hook failed by an internal error")
		}
	}()
	input, problem := readInput(h.In)
	if problem != "" {
		return h.refuse(problem)
	}
	answer, problem := h.exchange(h.home(), input)
	if problem != "" {
		return h.fail(problem)
	}
	return h.give(answer)
}

// home is the installed home, or where a daemon without options would have it; "" if nobody knows.
func (h *Hook) home() string {
	if h.Home != "" {
		return h.Home
	}
	if dir := h.Env("TOOLWARD_HOME"); dir != "" {
		return dir
	}
	if dir := h.Env("HOME"); dir != "" {
		return dir + "/.toolward"
	}
	return ""
}

// give writes the answer's bytes, standard output last: the reason must be there when the client reads the status.
func (h *Hook) give(a Answer) int {
	if a.Exit == ExitRefuse && len(a.Stderr) == 0 {
		a.Stderr = []byte("Toolward refused this call.\n") // without a reason Codex runs the tool
	}
	if !h.answered.CompareAndSwap(false, true) {
		return ExitRefuse // the deadline has spoken
	}
	if !WriteAll(h.Err, a.Stderr) && a.Exit == ExitRefuse {
		return ExitRefuse
	}
	if !WriteAll(h.Out, a.Stdout) {
		// Half an answer is not JSON, and what is not JSON lets the tool run: refuse by status instead.
		WriteAll(h.Err, []byte("Toolward: the answer could not be written, so this call is refused.\n"))
		return ExitRefuse
	}
	return a.Exit
}

// fail ends a run that got no answer: events that a client can go on from in safety end quietly, all others refuse.
func (h *Hook) fail(problem string) int {
	if harmless(h.Event) {
		if h.answered.CompareAndSwap(false, true) {
			WriteAll(h.Err, []byte("Toolward: "+problem+".\n"))
		}
		return 0
	}
	return h.refuse(problem)
}

// refuse says no with a reason.
func (h *Hook) refuse(problem string) int {
	if h.answered.CompareAndSwap(false, true) {
		WriteAll(h.Err, []byte("Toolward refused this: "+problem+".\n"))
	}
	return ExitRefuse
}

// harmless names the events before which no tool waits. Refusing them would not protect anything: a refused Stop
// makes the agent go on forever, a refused end or start only adds noise. What they would have told the daemon is
// made up for: open calls close as unknown, and every refused call stays refused while the daemon is away.
func harmless(event string) bool {
	switch event {
	case "Stop", "SubagentStop", "SessionEnd", "SessionStart":
		return true
	}
	return false
}

func parseNumber(s string) (n int64, ok bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// isName admits what may stand in the request line.
func isName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
