package protocol

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/identity"
)

// Bounds of a request to /tools/invoke.
const (
	maxInvokeBody = 2 << 20
	bodyPatience  = 30 * time.Second
)

// ToolsPath is where [Server.Tools] is served.
const ToolsPath = "/tools/invoke"

// Tools is POST /tools/invoke: one call of a tool, by a program that has the gateway's secret or an agent that has a
// token of its own. It goes through the gate like every other call, and waits for people where people decide.
func (s *Server) Tools() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			refuseUnread(w, &invocationError{status: http.StatusMethodNotAllowed, kind: typeMethod, message: "use POST"})
			return
		}
		agent, wrong := s.bearer(r, w.Header())
		if wrong != nil {
			refuseUnread(w, wrong)
			return
		}
		v, wrong := readInvocation(w, r)
		if wrong != nil {
			refuseUnread(w, wrong)
			return
		}
		v.agent = agent
		if agent == nil {
			// Only whoever has the gateway's secret may say on whose behalf it calls.
			v.channel, v.account = r.Header.Get("X-Openclaw-Message-Channel"), r.Header.Get("X-Openclaw-Account-Id")
			v.sender, v.thread = r.Header.Get("X-Openclaw-Message-To"), r.Header.Get("X-Openclaw-Thread-Id")
		}
		result, failed := s.invoke(r.Context(), v)
		if failed != nil {
			writeFailure(w, failed)
			return
		}
		body := map[string]any{"ok": true, "decision": result.decision}
		if result.result != nil {
			body["result"] = result.result
		}
		if v.dryRun {
			body["dryRun"] = true
		}
		writeBody(w, http.StatusOK, body)
	})
}

// bearer says who calls: the agent of a token, or nil for the gateway's secret.
func (s *Server) bearer(r *http.Request, answer http.Header) (*Agent, *invocationError) {
	at := s.keeper.proxies.Locate(r)
	secret, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	secret = strings.TrimSpace(secret)
	if wait, locked := s.keeper.locked(at, classShared); locked {
		answer.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		return nil, &invocationError{status: http.StatusTooManyRequests, kind: typeLimited, message: "too many failed authentication attempts"}
	}
	unauthorized := &invocationError{status: http.StatusUnauthorized, kind: typeUnauthorized, message: "unauthorized"}
	refused := func(class string) *invocationError {
		s.keeper.blame(at, class)
		s.log.Warn("a credential over HTTP was refused", "from", addressOf(at.Client), "program", userAgent(r.Header))
		return unauthorized
	}
	shared := s.keeper.judge(r.Context(), at, r.Header, secret, secret)
	switch {
	case shared.shared:
		s.keeper.forgive(at, classShared)
		return nil, nil
	case given && secret != "":
		agent, err := s.callAs(r.Context(), secret)
		if err == nil {
			s.keeper.forgive(at, classShared)
			return &agent, nil
		}
		if !errors.Is(err, ErrNoAgent) {
			s.log.Warn("a call over HTTP was refused", "err", err)
		}
		return nil, refused(classShared)
	case shared.ok && shared.method == ModeTrustedProxy && proxyScopes(r):
		return nil, nil
	case shared.ok && shared.method == ModeNone && at.Local():
		return nil, nil
	}
	return nil, unauthorized
}

// proxyScopes reports whether the user of a trusted proxy may call tools. The proxy's header can only narrow.
func proxyScopes(r *http.Request) bool {
	values, given := r.Header["X-Openclaw-Scopes"]
	if !given {
		return true
	}
	var scopes []string
	for _, scope := range strings.Split(strings.Join(values, ","), ",") {
		scopes = append(scopes, strings.TrimSpace(scope))
	}
	return identity.Covers(scopes, mayInvoke)
}

// invokeBody is the body of a request. Its shape is open, as clients have it; what is not known is not used.
type invokeBody struct {
	Tool       string          `json:"tool"`
	Action     string          `json:"action"`
	Args       json.RawMessage `json:"args"`
	SessionKey string          `json:"sessionKey"`
	DryRun     bool            `json:"dryRun"`
}

func readInvocation(w http.ResponseWriter, r *http.Request) (*invocation, *invocationError) {
	if len(r.TransferEncoding) > 0 {
		// A front proxy and this server could disagree where a body of unknown length ends.
		return nil, &invocationError{status: http.StatusLengthRequired, kind: typeInvalid, message: "send the body with a Content-Length"}
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, badCall("the body must be JSON: set Content-Type: application/json")
	}
	raw, wrong := readBody(w, r)
	if wrong != nil {
		return nil, wrong
	}
	fields, err := splitObject(raw)
	if err != nil {
		return nil, badCall("the body is not one JSON object: " + err.Error())
	}
	var body invokeBody
	for name, into := range map[string]any{
		"tool": &body.Tool, "action": &body.Action, "sessionKey": &body.SessionKey, "dryRun": &body.DryRun,
	} {
		if value := nonNull(fields[name]); value != nil && json.Unmarshal(value, into) != nil {
			return nil, badCall(name + " has the wrong type")
		}
	}
	if strings.TrimSpace(body.Tool) == "" {
		return nil, badCall("tools.invoke requires body.tool")
	}
	args := nonNull(fields["args"])
	if args != nil && args[0] != '{' {
		return nil, badCall("args must be an object")
	}
	return &invocation{
		tool: body.Tool, action: body.Action, args: args, sessionKey: body.SessionKey, dryRun: body.DryRun, client: "http",
		connection: "http:" + r.RemoteAddr,
	}, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *invocationError) {
	tooLarge := &invocationError{status: http.StatusRequestEntityTooLarge, kind: typeInvalid, message: "the body is larger than 2 MiB"}
	if r.ContentLength > maxInvokeBody {
		return nil, tooLarge
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience)) // a recorder in a test has none
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInvokeBody))
	_ = control.SetReadDeadline(time.Time{})
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, &invocationError{status: http.StatusRequestTimeout, kind: typeInvalid, message: "the body did not arrive whole"}
	}
	return raw, nil
}

// refuseUnread answers without waiting for what is left of the body: a client that sends it slowly, or never, would hold
// the connection.
func refuseUnread(w http.ResponseWriter, e *invocationError) {
	w.Header().Set("Connection", "close")
	writeFailure(w, e)
}

func writeFailure(w http.ResponseWriter, e *invocationError) {
	detail := map[string]any{"type": e.kind, "message": e.message}
	if e.code != "" {
		detail["code"] = e.code
	}
	if e.pending != nil {
		detail["approvalId"], detail["expiresAtMs"] = e.pending.ID, e.pending.ExpiresAt.UnixMilli()
	}
	writeBody(w, e.status, map[string]any{"ok": false, "error": detail})
}

func writeBody(w http.ResponseWriter, status int, body any) {
	raw, err := encode(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"ok":false,"error":{"type":"tool_error","message":"the result cannot be written"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(raw)))
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a vanished client is no error of ours
}

// Ready says whether the gateway takes work. details are for whoever shows a credential.
func (s *Server) Ready(r *http.Request) (ready bool, details map[string]any) {
	s.mu.Lock()
	ready, n := !s.closed, len(s.conns)
	s.mu.Unlock()
	if _, refused := s.bearer(r, http.Header{}); refused == nil {
		details = map[string]any{"connections": n, "uptimeMs": time.Since(s.started).Milliseconds(), "pendingApprovals": s.approvals.Count()}
	}
	return ready, details
}
