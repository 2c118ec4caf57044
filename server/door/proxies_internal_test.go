package door

import (
	"net/http/httptest"
	"testing"
)

// TestClientHasNoZone keeps what a client made up out of its address: a zone may be any text, and each text would be a
// new start for who guesses.
func TestClientHasNoZone(t *testing.T) {
	trusted, err := ParseProxies([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"X-Forwarded-For", "X-Real-Ip"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "127.0.0.1:5000"
		r.Header.Set(header, "fe80::1%anything")
		if got := (Proxies{trusted, true}).Client(r).String(); got != "fe80::1" {
			t.Errorf("%s: %q", header, got)
		}
	}
}
