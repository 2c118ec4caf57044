package door

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
)

// Problem is the body of every refused or failed API request.
type Problem struct {
	Status  int    `json:"status"`         // HTTP status
	Message string `json:"error"`          // what is wrong, in words
	Hint    string `json:"hint,omitempty"` // how to mend it
}

func (p *Problem) Error() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

func NewProblem(status int, hint, format string, args ...any) *Problem {
	return &Problem{Status: status, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// problemOf turns any error into a Problem. Errors nobody meant for the outside become a plain 500: their text goes
// to the log, not to whoever asked.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return NewProblem(http.StatusRequestEntityTooLarge, "", "the body is larger than %d bytes", tooLarge.Limit)
	}
	return NewProblem(http.StatusInternalServerError, "see the daemon's log", "internal error")
}

func WriteJSON(w http.ResponseWriter, status int, body any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(true)
	if err := enc.Encode(body); err != nil {
		status = http.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"status":500,"error":"the answer cannot be written as JSON"}` + "\n")
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // a vanished client is no error of ours
}

// readJSON decodes a body strictly: the right media type, one value, no unknown keys. The media type matters, since
// a cross-site form can post text/plain but not application/json without a pre-flight.
func ReadJSON(r *http.Request, into any) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return NewProblem(http.StatusUnsupportedMediaType, "set Content-Type: application/json", "the body must be JSON")
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return NewProblem(http.StatusBadRequest, "docs/api.md lists the fields of every request", "the body is not what this route takes: %s", cleanJSONError(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return NewProblem(http.StatusBadRequest, "", "the body holds more than one JSON value")
	}
	return nil
}

func cleanJSONError(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// quoteShort quotes untrusted text for a message, bounded and with everything unprintable escaped.
func QuoteShort(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.QuoteToASCII(s)
}

// Run calls a handler and turns its error, or its panic, into what the client is told; nil if it answered itself.
func Run(log *slog.Logger, handle func(http.ResponseWriter, *http.Request) error, w http.ResponseWriter, r *http.Request) (p *Problem) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			log.Error("a request panicked", "route", r.Pattern, "panic", v, "stack", string(debug.Stack()))
			p = ProblemOf(fmt.Errorf("panic: %v", v))
		}
	}()
	err := handle(w, r)
	if err == nil {
		return nil
	}
	p = ProblemOf(err)
	if p.Status == http.StatusInternalServerError {
		log.Error("a request failed", "route", r.Pattern, "err", err)
	}
	return p
}

// JSON turns an error of a handler into a JSON answer, and a panic into an error.
func JSON(log *slog.Logger, handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := Run(log, handle, w, r); p != nil {
			WriteJSON(w, p.Status, p)
		}
	}
}
