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
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/schema"
)

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
	h := &Handler{config: c, log: c.Log, guests: map[string]*guest{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if h.open, err = schema.Compile(openSchema, schema.Options{Foreign: true}); err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	for _, row := range clients {
		if h.guests[row.name], err = h.guest(row); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (h *Handler) guest(row *client) (_ *guest, err error) {
	c := &h.config
	agent := cmp.Or(c.Agent, row.name)
	g := &guest{
		client: row, h: h, agent: agent, forms: map[string]*form{}, calls: newCalls(c.MaxOpen, h.log),
		finders: factsFinders{client: row, layout: c.Layout, agent: agent, shared: c.Places, commands: c.Command, enforces: c.EnforceText, confined: c.Confines, byTicket: c.ByTicket},
	}
	for name, tool := range row.tools {
		if g.forms[name], err = tool.compile(); err != nil {
			return nil, fmt.Errorf("bridge: table of %s, %s: %w", row.title, name, err)
		}
	}
	return g, nil
}

// Close ends the calls whose outcome is still awaited.
func (h *Handler) Close(ctx context.Context) {
	for _, g := range h.guests {
		g.calls.closeAll(ctx, everything)
	}
}

// ServeHTTP answers one hook: POST /v1/hook/<client>[/<event>]. Every answer, also a failure, is a complete frame:
// the hook refuses by itself on anything else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client, event, ok := hookPath(r.URL.Path)
	guest := h.guests[client]
	if !ok || r.Method != http.MethodPost || guest == nil {
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
	reply := guest.answer(guest, ctx, event, body, env)
	if !h.write(w, reply.Answer) || r.Context().Err() != nil {
		reply.undelivered()
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
