package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/hostdaemon"
)

// serve has a handler answer at the socket of a new home.
func serve(t *testing.T, handler http.HandlerFunc) *local.Gateway {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "tw") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	listener, err := net.Listen("unix", filepath.Join(home, hostdaemon.SocketName))
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
		{name: "nobody there", gateway: local.At("/nonexistent"), kind: local.ErrAbsent, text: "no gateway answers at /nonexistent/" + hostdaemon.SocketName, hint: "start it with: toolward up"},
		{name: "not signed in", gateway: refuse(401, `{"error":"who are you"}`), kind: local.ErrNotPerson, text: "who are you", hint: "sign this terminal in with: toolward login"},
		{name: "its own hint", gateway: refuse(403, `{"error":"no","hint":"do this"}`), kind: local.ErrNotPerson, text: "no", hint: "do this"},
		{name: "no JSON", gateway: refuse(500, " broken \n"), text: "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.gateway.Status(t.Context())
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

func TestApprovalsArriveWholeAndInOrder(t *testing.T) {
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, ": alive\n\nevent: sync\ndata: {\"approvals\":[{\"slug\":\"one\"},\ndata: {\"slug\":\"two\"}]}\n\n"+
			"event: resolved\ndata:{\"slug\":\"one\"}\n\nevent: of-later\ndata: {}\n\nevent: approval\ndata: {\"slug\":\"cut\"}")
	})
	var got []string
	err := g.Watch(t.Context(), func(news local.News) error {
		text := fmt.Sprint(news.All, len(news.Raw))
		for _, a := range news.Approvals {
			text += " " + a.Slug
		}
		got = append(got, text)
		return nil
	})
	if !errors.Is(err, local.ErrAbsent) {
		t.Errorf("a stream that ends by itself is %v", err)
	}
	if want := []string{"true 45 one two", "false 14 one", "false 2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	enough := errors.New("enough")
	if err := g.Watch(t.Context(), func(local.News) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

func TestRecordsAreFollowedUntilTheGatewayIsGone(t *testing.T) {
	g := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{\"seq\":1}\n{\"seq\":2}\n") })
	var got []string
	err := g.FollowRecords(t.Context(), func(record []byte) error {
		got = append(got, string(record))
		return nil
	})
	if want := []string{`{"seq":1}`, `{"seq":2}`}; !errors.Is(err, local.ErrAbsent) || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

// What replaces the allowlist without saying which one must still not undo the change of somebody else: the gateway is told the
// hash of what stood there.
func TestTheAllowlistIsReplacedByItsHash(t *testing.T) {
	var bodies []string
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
		}
		fmt.Fprint(w, `{"hash":"present"}`)
	})
	for _, base := range []string{"", "mine"} {
		list, err := g.ReplaceAllowlist(t.Context(), json.RawMessage(`{}`), base)
		if err != nil || string(list.RawMessage) != `{"hash":"present"}` {
			t.Errorf("got %s, %v", list.RawMessage, err)
		}
	}
	if want := []string{`{"file":{},"baseHash":"present"}`, `{"file":{},"baseHash":"mine"}`}; !slices.Equal(bodies, want) {
		t.Errorf("got %q, want %q", bodies, want)
	}
}

func TestNamesInAddressesAreEscaped(t *testing.T) {
	var asked []string
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath())
		fmt.Fprint(w, "{}")
	})
	const odd = "../a?b"
	_, err := g.Approval(t.Context(), odd)
	err = errors.Join(err, g.RevokeGrant(t.Context(), odd), g.RevokeToken(t.Context(), odd), g.RemoveDevice(t.Context(), odd), g.StopSandbox(t.Context(), odd))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /v1/approvals/..%2Fa%3Fb", "POST /v1/grants/..%2Fa%3Fb/revoke", "POST /v1/tokens/..%2Fa%3Fb/revoke",
		"POST /v1/devices/..%2Fa%3Fb/remove", "POST /v1/sandboxes/..%2Fa%3Fb/stop",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("got %q, want %q", asked, want)
	}
}
