package bridge

import (
	"context"
	"log/slog"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/schema"
)

// Sessions is told what clients report about their conversations. What a client reports only ever makes a session
// tenser: an agent could send such a report itself.
type Sessions interface {
	// Usage says how full the context of a conversation is, in tokens; tokens is -1 if that is unknown.
	Usage(ctx context.Context, key toolward.SessionKey, tokens, window int64) error
	// Compacted says that the client has replaced the history of a conversation by a summary.
	Compacted(ctx context.Context, key toolward.SessionKey) error
	// Expose says what a conversation has seen of strangers' texts.
	Expose(ctx context.Context, key toolward.SessionKey, e toolward.Exposure) error
	// RaiseFloor keeps a conversation at least that tense for a time.
	RaiseFloor(ctx context.Context, key toolward.SessionKey, level toolward.Level, duration time.Duration, by string) error
}

// Who answers the questions of an attended session.
const (
	AttendedToolward = "toolward" // Toolward's own surfaces
	AttendedClient   = "client"   // the client's own prompt
)

// Config is what the handler needs.
type Config struct {
	Gateway  *toolward.Gateway
	Sessions Sessions
	Layout   place.Layout // without workspace: each session has its own

	// Places gives the places of a caller's files, as the gateway's own tools see them. Nil: those of Layout.
	Places func(toolward.Caller) (*place.Classifier, error)

	// Command finds out what a command would do that the client's POSIX shell is to run where it stands. machine: the client
	// asks for the machine. Nil: commands are not analyzed, and ask.
	Command func(ctx context.Context, r *toolward.Request, command string, machine bool) (toolward.Facts, error)
	// ByTicket reports whether a command must not be run by the client's shell itself but through a ticket, and whether that
	// shell follows it into another directory. Nil: none must.
	ByTicket func(*toolward.Request) (yes, moves bool)
	// Confines reports whether commands of a caller are confined where nothing else is said. Nil: none are.
	Confines func(toolward.Caller) bool
	// Tickets gives what confined commands are started by. Nil, or an answer of nil: such a command is refused.
	Tickets func() *ticket.Office
	// Started is told of every call that the client was let run, or that its person let run. Nil: nobody is.
	Started func(*toolward.Request)
	// EnforceText rewrites commands that run without a question to the text that was judged: programs by their paths,
	// words as they were expanded.
	EnforceText bool

	// Redact hides secrets in a text and reports whether there were any. Nil: results are passed on as they are.
	Redact func(text string) (clean string, found bool)

	Agent    string // agent id of the sessions; default the name of the client
	Owner    bool   // the sessions act for the owner: daemon and clients run under the same person's account
	Attended string // AttendedToolward (default) or AttendedClient; sessions without a person always ask Toolward

	// Windows gives the context window in tokens of models that the built-in list does not know, by model name.
	Windows map[string]int64

	MaxOpen int          // most calls whose outcome is awaited, all sessions of a client together; default 10,000
	Log     *slog.Logger // optional
}

// Handler serves the hooks of clients. It belongs on the local socket only: who reaches it can make requests in the
// name of an agent, and no more.
type Handler struct {
	config Config
	log    *slog.Logger
	guests map[string]*guest // by the name of the client
	open   *schema.Schema    // of unknown tools
	usage  usageCache
}

// client is what the handler, the installer and the doctor know of one client.
type client struct {
	name    string            // in paths, settings, session keys and the names of its unknown tools
	title   string            // as people know it
	tools   map[string]native // by its own names
	aliases map[string]string // older names of tools that it still understands

	// answer answers one event of its contract.
	answer func(g *guest, ctx context.Context, event string, body []byte, env environment) reply

	directory string        // with its settings, in a home and in a project
	variable  string        // of the environment, which puts the directory of a home elsewhere; "" if none does
	managed   func() string // the administrator's settings file
	events    []string      // those that the hook is installed for, in the order in which they are written

	// canary is a call of [CanaryTool] as it gives it to its hook, and the environment of the hook.
	canary func(workDir string) (event []byte, environ []string, err error)
	// switches are variables that keep the hooks of a person's settings from running, starts finds flags that do in a command line.
	switches []string
	starts   *regexp.Regexp
	// blocks reports whether what its hook has printed refuses the call.
	blocks func(stdout []byte) bool

	// command is a call of its shell as it gives it to its hook; instead is what it would run after an answer that allows
	// the call, "" for the command itself. Both are nil where its commands cannot be confined.
	command func(workDir, text string) (event []byte, environ []string, err error)
	instead func(stdout []byte) (command string, allowed bool)
}

// guest is a client that is served, with what is kept for it.
type guest struct {
	*client
	h       *Handler
	agent   string           // id of its sessions' agent
	forms   map[string]*form // its tools, by native name
	finders factsFinders
	calls   *calls
}

// environment is what the hook told of where it runs.
type environment struct {
	project    string // the client's project directory, "" if it did not say
	attended   bool   // a person is at the client
	entrypoint string
	deadline   time.Duration // when the hook gives up; 0 if it did not say
}

// reply is an answer, and what to do when it does not reach the hook.
type reply struct {
	hookclient.Answer
	lost func()
}

func (r reply) undelivered() {
	if r.lost != nil {
		r.lost()
	}
}

// refuseHook is the answer that refuses in every client.
func refuseHook(problem string) hookclient.Answer {
	return hookclient.Answer{Exit: hookclient.ExitRefuse, Stderr: []byte("Toolward refused this: " + problem + ".\n")}
}

// guarded runs a part that reads what a client sent. A panic in it refuses: a crash must not open the gate.
func (h *Handler) guarded(what string, part func() reply) (out reply) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("hook panicked", "event", what, "panic", v, "stack", string(debug.Stack()))
			out = reply{Answer: refuseHook("an internal error stopped it")}
		}
	}()
	return part()
}
