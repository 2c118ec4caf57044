package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client"
)

// strange is a gateway that says what it is told to: greeting, then for each request what answer returns.
func strange(t *testing.T, greeting string, answer func(id, method string, params map[string]any) []string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		ctx := context.WithoutCancel(r.Context())
		for lines := []string{greeting}; ; {
			for _, line := range lines {
				if ws.Write(ctx, websocket.MessageText, []byte(line)) != nil {
					return
				}
			}
			_, raw, err := ws.Read(ctx)
			var request struct {
				ID, Method string
				Params     map[string]any
			}
			if err != nil || json.Unmarshal(raw, &request) != nil {
				return
			}
			lines = []string{`{"type":"res","id":"connect","ok":true,"payload":{"type":"hello-ok"}}`}
			if request.Method != "connect" {
				lines = answer(request.ID, request.Method, request.Params)
			}
		}
	}))
	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

const challenge = `{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`

func event(name string, seq int) string {
	return fmt.Sprintf(`{"type":"event","event":%q,"payload":{"n":%d},"seq":%d}`, name, seq, seq)
}

func ok(id string) string {
	return fmt.Sprintf(`{"type":"res","id":%q,"ok":true,"payload":{}}`, id)
}

// Whoever watches is told when events were lost, wherever that was, and loses none of those that come afterwards.
func TestMissed(t *testing.T) {
	const flood = 400
	address := strange(t, challenge, func(id, method string, _ map[string]any) []string {
		switch method {
		case "gap":
			return []string{event("a", 1), event("b", 3), event("c", 4), ok(id)}
		case "flood":
			var lines []string
			for i := range flood {
				lines = append(lines, event("more", 5+i))
			}
			return append(lines, ok(id))
		}
		return []string{event("last", 5+flood), ok(id)}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := connect(t, got(client.Dial(ctx, client.Options{Address: address})))
	news := c.Watch(ctx)
	must(c.Request(ctx, "gap", nil, nil))
	var names []string
	for range 4 {
		names = append(names, (<-news).Name)
	}
	if want := "a missed b c"; strings.Join(names, " ") != want {
		t.Errorf("got %v, want %s", names, want)
	}
	must(c.Request(ctx, "flood", nil, nil)) // nobody reads meanwhile
	lost, n := false, 0
	for len(news) > 0 {
		e := <-news
		lost = e.Name == client.Missed // it is the last one, too
		n++
	}
	if !lost || n >= flood {
		t.Errorf("%d of %d arrived, and the last one says so: %v", n, flood, lost)
	}
	must(c.Request(ctx, "one more", nil, nil))
	if e := <-news; e.Name != "last" {
		t.Errorf("got %+v", e)
	}
}

// What a gateway says that is not an answer to the question allows nothing.
func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ accepted, final string }{
		"of another question":       {`"id":"ID"`, `"id":"other","decision":"allow-once"`},
		"accepted another":          {`"id":"other"`, `"id":"ID","decision":"allow-once"`},
		"a word that is no answer":  {`"id":"ID"`, `"id":"ID","decision":"allow"`},
		"empty":                     {`"id":"ID"`, `"id":"ID","decision":""`},
		"no text":                   {`"id":"ID"`, `"id":"ID","decision":true`},
		"nothing":                   {`"id":"ID"`, `"id":"ID"`},
		"nothing, and to the point": {`"id":"ID"`, `"id":"ID","decision":null`},
	} {
		t.Run(name, func(t *testing.T) {
			address := strange(t, challenge, func(id, _ string, params map[string]any) []string {
				question, _ := params["id"].(string)
				lines := []string{
					fmt.Sprintf(`{"type":"res","id":%q,"ok":true,"payload":{"status":"accepted",%s}}`, id, c.accepted),
					fmt.Sprintf(`{"type":"res","id":%q,"ok":true,"payload":{%s}}`, id, c.final),
				}
				for i := range lines {
					lines[i] = strings.ReplaceAll(lines[i], "ID", question)
				}
				return lines
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			program := connect(t, got(client.Dial(ctx, client.Options{Address: address})))
			asked, err := program.AskCommand(ctx, client.Command{Text: "make"})
			if name == "accepted another" {
				if err == nil {
					t.Error("another question was accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a, err := asked.Wait(ctx)
			if a.Decision != toolward.NoDecision || a.Decision.Allows() || (err == nil) != strings.HasPrefix(name, "nothing") {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// What a gateway says why is printed by programs: it must not write to the terminal as it likes.
func TestRefusalsArePlain(t *testing.T) {
	const hostile = `\u001b]0;owned\u0007\u202etxet\r\nok`
	address := strange(t, challenge, func(id, _ string, _ map[string]any) []string {
		return []string{fmt.Sprintf(`{"type":"res","id":%q,"ok":false,"error":{"code":"NO%s","message":"no%s","details":{"code":"PAIRING_REQUIRED","requestId":"x%s"}}}`,
			id, hostile, hostile, hostile)}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := connect(t, got(client.Dial(ctx, client.Options{Address: address}))).Request(ctx, "health", nil, nil)
	var refused *client.Error
	if !errors.As(err, &refused) || !errors.Is(err, client.ErrPairing) {
		t.Fatal(err)
	}
	for _, text := range []string{err.Error(), refused.Code, refused.Message, refused.Pairing} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\u007f' || r == '\u202e' }) {
			t.Errorf("%q", text)
		}
	}
}

// A program gives its credential to nothing but what greets as a gateway, where it was sent.
func TestWhatIsNoGateway(t *testing.T) {
	var elsewhere atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Store(true) }))
	defer other.Close()
	redirects := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	for name, address := range map[string]string{
		"a redirect":     "ws" + strings.TrimPrefix(redirects.URL, "http"),
		"a web page":     "ws" + strings.TrimPrefix(other.URL, "http") + "/page",
		"another event":  strange(t, event("tick", 1), nil),
		"no nonce":       strange(t, `{"type":"event","event":"connect.challenge","payload":{}}`, nil),
		"no frame":       strange(t, `hello`, nil),
		"an empty frame": strange(t, `{}`, nil),
	} {
		elsewhere.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		c, err := client.Dial(ctx, client.Options{Address: address, Token: secret})
		cancel()
		if err == nil {
			must(c.Close())
			t.Errorf("%s: it is connected", name)
		}
		if name == "a redirect" && elsewhere.Load() {
			t.Error("a redirect was followed")
		}
	}
}
