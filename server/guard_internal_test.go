package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolward/toolward/server/door"
)

// TestTransportSecurity promises TLS for the public name only: a promise for localhost would count for every port of
// the machine, for the console's own address and for whatever people develop there.
func TestTransportSecurity(t *testing.T) {
	for _, c := range []struct {
		public, host        string
		promised, encrypted bool
	}{
		{"https://gate.example.org", "gate.example.org", true, true},
		{"https://gate.example.org", "gate.example.org.", true, true}, // the same name to DNS, and to a browser
		{"https://gate.example.org", "localhost:7411", false, false},
		{"http://gate.example.org", "gate.example.org", false, false},
		{"https://localhost:8443", "localhost:8443", false, true},
		{"https://127.0.0.1:8443", "127.0.0.1:8443", false, true},
		{"https://gate.localhost", "gate.localhost", false, true},
	} {
		public, err := door.ParsePublicOrigin(c.public)
		if err != nil {
			t.Fatal(err)
		}
		s := &door.Address{Public: public}
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		encrypted(s, http.NotFoundHandler()).ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security") != ""; got != c.promised || s.IsEncrypted(r) != c.encrypted {
			t.Errorf("%q at %q: promised %v, encrypted %v", c.host, c.public, got, s.IsEncrypted(r))
		}
	}
}
