package door

import (
	"net/http/httptest"
	"testing"
)

// TestThisMachineIsOnePlace gives a program of this machine no new start for every loopback address that it connects
// from: there are sixteen million.
func TestThisMachineIsOnePlace(t *testing.T) {
	s := &Address{}
	for from, want := range map[string]string{
		"127.0.0.1:5000": "127.0.0.1", "127.0.0.2:5000": "127.0.0.1", "127.9.9.9:5000": "127.0.0.1", "[::1]:5000": "127.0.0.1",
		"[::ffff:127.0.0.3]:5000": "127.0.0.1", "192.0.2.7:5000": "192.0.2.7", "[2001:db8::7]:5000": "2001:db8::7", "nonsense": "unknown",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from
		if got := s.SourceOf(r); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}
