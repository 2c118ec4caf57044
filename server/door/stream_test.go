package door

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestStreamCutsOffWhoDoesNotRead checks that a reader that takes nothing costs a bounded time and one buffer.
func TestStreamCutsOffWhoDoesNotRead(t *testing.T) {
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := OpenStream(w, 50*time.Millisecond)
		for err == nil {
			err = s.Send("card", map[string]string{"html": strings.Repeat("x", 64<<10)})
		}
		ended <- err
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the stream still waits for its reader")
	}
}

func TestStreamEventsCannotBeForged(t *testing.T) {
	recorder := httptest.NewRecorder()
	s := &EventStream{w: recorder, control: http.NewResponseController(deadlines{recorder}), patience: time.Second}
	if err := s.Send("card", map[string]string{"html": "a\n\nevent: gone\ndata: {}\r\r"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(recorder.Body.String(), "\n"); got != 3 || strings.Contains(recorder.Body.String(), "\r") {
		t.Errorf("one event became %q", recorder.Body)
	}
}

// deadlines gives a recorder the deadlines of a connection.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetWriteDeadline(time.Time) error { return nil }
