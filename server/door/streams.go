package door

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Bounds of an event stream.
const (
	WritePatience = 10 * time.Second // a reader that takes nothing for so long is gone
	Heartbeat     = 20 * time.Second
	EventBuffer   = 64 // events that may wait for a reader; past that it is told to look again
	MaxStreams    = 64 // open event streams altogether
)

// eventStream writes server-sent events to one reader. Each write has a deadline, so that a reader that stops
// reading holds a connection for seconds and never more than a small buffer.
type EventStream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	buf      bytes.Buffer
}

// openStream begins a stream of events; patience is how long one write may take.
func OpenStream(w http.ResponseWriter, patience time.Duration) (*EventStream, error) {
	s := &EventStream{w: w, control: http.NewResponseController(w), patience: patience}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // a reverse proxy must not hold events back
	h.Del("Content-Length")
	w.WriteHeader(http.StatusOK)
	s.buf.WriteString("retry: 1500\n\n")
	return s, s.flush()
}

// send writes one event. JSON has no line breaks, so the data is one line and cannot end the event early.
func (s *EventStream) Send(name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", name, err)
	}
	fmt.Fprintf(&s.buf, "event: %s\ndata: %s\n\n", name, raw)
	return s.flush()
}

// beat keeps proxies from closing a quiet stream, and finds readers that are gone.
func (s *EventStream) Beat() error {
	s.buf.WriteString(": \n\n")
	return s.flush()
}

func (s *EventStream) flush() error {
	defer s.buf.Reset()
	if err := s.control.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	return nil
}

// Streams counts the open event streams of all doors, and ends them with the server.
type Streams struct {
	places   chan struct{}
	stopping chan struct{}
	once     sync.Once
}

// NewStreams makes room for event streams.
func NewStreams() *Streams {
	return &Streams{places: make(chan struct{}, MaxStreams), stopping: make(chan struct{})}
}

// Enter takes a place; false if there is none.
func (s *Streams) Enter() bool {
	select {
	case s.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// Leave gives the place back.
func (s *Streams) Leave() { <-s.places }

// Stop ends all streams.
func (s *Streams) Stop() { s.once.Do(func() { close(s.stopping) }) }

// Stopping reports whether the server ends.
func (s *Streams) Stopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// EndedBy returns a context that ends with the request or with the server: an open stream must not hold up the
// daemon's end.
func (s *Streams) EndedBy(r *http.Request) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
