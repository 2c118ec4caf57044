package local_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/client/local"
)

// serve has a handler answer at the socket of a new home.
func serve(t *testing.T, handler http.HandlerFunc) *local.Gateway {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "tw") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	listener, err := net.Listen("unix", filepath.Join(home, hookclient.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return local.At(home)
}

func TestWhatWentWrongHasItsKindAndHint(t *testing.T) {
	refuse := func(status int, body string) *local.Gateway {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	for _, c := range []struct {
		name       string
		gateway    *local.Gateway
		kind       error
		text, hint string
	}{
		{name: "nobody there", gateway: local.At("/nonexistent"), kind: local.ErrAbsent, text: "no gateway answers at /nonexistent/" + hookclient.SocketName, hint: "start it with: toolward up"},
		{name: "not signed in", gateway: refuse(401, `{"error":"who are you"}`), kind: local.ErrNotPerson, text: "who are you", hint: "sign this terminal in with: toolward login"},
		{name: "its own hint", gateway: refuse(403, `{"error":"no","hint":"do this"}`), kind: local.ErrNotPerson, text: "no", hint: "do this"},
		{name: "no JSON", gateway: refuse(500, " broken \n"), text: "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.gateway.Get(t.Context(), "/v1/status", nil, nil)
			var got *local.Error
			if !errors.As(err, &got) || got.Error() != c.text || got.Hint != c.hint || !errors.Is(got.Kind, c.kind) {
				t.Errorf("got %#v: %v", got, err)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is not %v", err, c.kind)
			}
		})
	}
}

func TestEventsArriveWholeAndInOrder(t *testing.T) {
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("since") != "3" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, ": alive\n\nevent: one\ndata: 1\ndata: 2\n\ndata:3\n\nevent: cut\ndata: lost")
	})
	var got []string
	err := g.Follow(t.Context(), "/v1/events", url.Values{"since": {"3"}}, func(name string, data []byte) error {
		got = append(got, name+"="+string(data))
		return nil
	})
	if !errors.Is(err, local.ErrAbsent) {
		t.Errorf("a stream that ends by itself is %v", err)
	}
	if want := []string{"one=12", "=3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	enough := errors.New("enough")
	if err := g.Follow(t.Context(), "/v1/events", url.Values{"since": {"3"}}, func(string, []byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}
