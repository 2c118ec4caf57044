package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/hookclient"
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

	// Command finds out what a command would do that the client's own POSIX shell runs in a directory. Nil: commands are
	// not analyzed, and ask.
	Command func(ctx context.Context, r *toolward.Request, command, dir string) (toolward.Facts, error)
	// Started is told of every call that the client was let run, or that its person let run. Nil: nobody is.
	Started func(*toolward.Request)
	// EnforceText rewrites commands that run without a question to the text that was judged: programs by their paths,
	// words as they were expanded.
	EnforceText bool

	// Redact hides secrets in a text and reports whether there were any. Nil: results are passed on as they are.
	Redact func(text string) (clean string, found bool)

	Agent    string // agent id of the sessions; default "claude-code" for Claude Code
	Owner    bool   // the sessions act for the owner: daemon and clients run under the same person's account
	Attended string // AttendedToolward (default) or AttendedClient; sessions without a person always ask Toolward

	// Windows gives the context window in tokens of models that the built-in list does not know, by model name.
	Windows map[string]int64

	MaxOpen int          // most calls whose outcome is awaited, all sessions together; default 10,000
	Log     *slog.Logger // optional
}

// Handler serves the hooks of clients. It belongs on the local socket only: who reaches it can make requests in the
// name of an agent, and no more.
type Handler struct {
	config  Config
	log     *slog.Logger
	forms   map[string]*form // of Claude Code, by native name
	open    *schema.Schema   // of unknown tools
	finders factsFinders
	calls   *calls
	usage   usageCache
}

// NewHandler builds the handler for requests below /v1/hook/.
func NewHandler(c Config) (*Handler, error) {
	if c.Gateway == nil || c.Sessions == nil {
		return nil, errors.New("bridge: the handler needs a gateway and sessions")
	}
	switch c.Attended {
	case "":
		c.Attended = AttendedToolward
	case AttendedToolward, AttendedClient:
	default:
		return nil, fmt.Errorf("bridge.attended: %q is unknown; use %s or %s", c.Attended, AttendedToolward, AttendedClient)
	}
	if c.MaxOpen <= 0 {
		c.MaxOpen = 10_000
	}
	h := &Handler{config: c, log: c.Log, forms: map[string]*form{}, finders: factsFinders{
		layout: c.Layout, agent: cmp.Or(c.Agent, ClaudeCode), shared: c.Places, commands: c.Command, enforces: c.EnforceText,
	}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.calls = newCalls(c.MaxOpen, h.log)
	var err error
	if h.open, err = schema.Compile(openSchema, schema.Options{Foreign: true}); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	for name, row := range claudeTools {
		if h.forms[name], err = row.compile(); err != nil {
			return nil, fmt.Errorf("bridge: table of Claude Code, %s: %w", name, err)
		}
	}
	return h, nil
}

// Close ends the calls whose outcome is still awaited.
func (h *Handler) Close(ctx context.Context) { h.calls.closeAll(ctx, everything) }

// environment is what the hook told of where it runs.
type environment struct {
	project    string // the client's project directory, "" if it did not say
	attended   bool   // a person is at the client
	entrypoint string
	deadline   time.Duration // when the hook gives up; 0 if it did not say
}

// ServeHTTP answers one hook: POST /v1/hook/<client>[/<event>]. Every answer, also a failure, is a complete frame:
// the hook refuses by itself on anything else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client, event, ok := hookPath(r.URL.Path)
	if !ok || r.Method != http.MethodPost || client != ClaudeCode {
		http.Error(w, "no such hook", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, hookclient.MaxInput))
	if err != nil {
		h.write(w, refuseHook("the event could not be read"))
		return
	}
	env := environmentOf(r.Header)
	ctx := r.Context()
	if env.deadline > 2*time.Second {
		// The answer must be written before the hook gives up, and the question must not stay open after that.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, env.deadline-time.Second)
		defer cancel()
	}
	reply := h.claudeCode(ctx, event, body, env)
	if !h.write(w, reply.Answer) || r.Context().Err() != nil {
		reply.undelivered()
	}
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

func hookPath(path string) (client, event string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/hook/")
	client, event, _ = strings.Cut(rest, "/")
	return client, event, ok && client != "" && !strings.Contains(event, "/")
}

// write sends the frame and reports whether the connection took it.
func (h *Handler) write(w http.ResponseWriter, a hookclient.Answer) bool {
	frame := hookclient.AppendAnswer(nil, a)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(frame)))
	if _, err := w.Write(frame); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// environmentOf reads the headers that hookclient sends.
func environmentOf(header http.Header) environment {
	value := func(name string) string {
		plain, err := url.PathUnescape(header.Get(name))
		if err != nil {
			return ""
		}
		return plain
	}
	env := environment{project: value("Toolward-Project-Dir"), attended: value("Toolward-Attended") == "1", entrypoint: value("Toolward-Entrypoint")}
	if !filepath.IsAbs(env.project) || strings.ContainsRune(env.project, 0) {
		env.project = ""
	}
	if ms, err := strconv.ParseInt(header.Get("Toolward-Deadline-Ms"), 10, 64); err == nil && ms > 0 {
		env.deadline = time.Duration(ms) * time.Millisecond
	}
	return env
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
