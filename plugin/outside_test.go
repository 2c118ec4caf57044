package plugin_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/plugin"
)

const token = "ghp_R8x2LmQ0vT5nYc7KdWb3ZsJf6HaPe9Ug1oXi"

// Plug-ins outside see no secrets, neither before nor after a call.
func TestSecretsStayInside(t *testing.T) {
	note := filepath.Join(t.TempDir(), "requests")
	e := program(t, "notes", note)
	e.Hooks = []plugin.Name{plugin.BeforeToolCall, plugin.AfterToolCall}
	g := newGuarded(t, toolward.Allow, nil, only(e))
	g.Policy.All[0].Run = func(context.Context, *toolward.Request) (toolward.Result, error) {
		return toolward.Result{Content: []toolward.Content{{Text: "token " + token}, {MIME: "image/png", Data: []byte("picture")}, {Text: strings.Repeat("long ", 20_000)}}}, nil
	}
	if err := g.write(t, `{"content":"curl -H 'Authorization: Bearer `+token+`'","password":"Xq7-long-hidden-4u"}`); err != nil {
		t.Fatal(err)
	}
	var raw []byte
	if !eventually(5*time.Second, func() bool { raw, _ = os.ReadFile(note); return strings.Count(string(raw), "\n") == 2 }) {
		t.Fatalf("the program was asked %q", raw)
	}
	first, second, _ := strings.Cut(string(raw), "\n")
	for _, line := range []string{first, second} {
		if strings.Contains(line, token[4:]) || strings.Contains(line, "Xq7-long") || !strings.Contains(line, "[hidden: ") {
			t.Errorf("the program saw %.2000s", line)
		}
	}
	var after struct {
		Event struct {
			Status     string
			DurationMs *int
			Result     struct {
				Content   []map[string]any
				Truncated bool
			}
		}
		Ctx map[string]any
	}
	if err := json.Unmarshal([]byte(second), &after); err != nil {
		t.Fatal(err)
	}
	binary := after.Event.Result.Content[1]
	if after.Event.Status != "ok" || after.Event.DurationMs == nil || !after.Event.Result.Truncated || len(second) > 70_000 || binary["type"] != "binary" || binary["bytes"] != 7.0 {
		t.Errorf("told %.3000s", second)
	}
	if requester := fmt.Sprint(after.Ctx["requester"]); requester != "map[senderIsOwner:true]" {
		t.Errorf("requester %s", requester)
	}
}

// A placeholder means "as it was"; anywhere else it is an error, so that neither it nor a secret ends up where the
// plug-in wants it.
func TestPlaceholders(t *testing.T) {
	secret := `{"path":"a","token":"` + token + `","list":["x","` + token + `"]}`
	shown := "[hidden: github-token]"
	for name, test := range map[string]struct{ params, ran string }{
		"as shown":             {`{"token":"` + shown + `","path":"b"}`, `{"list":["x","` + token + `"],"path":"b","token":"` + token + `"}`},
		"as shown, in a list":  {`{"list":["y","` + shown + `"]}`, `{"list":["y","` + token + `"],"path":"a","token":"` + token + `"}`},
		"moved":                {`{"path":"` + shown + `"}`, ""},
		"moved in a list":      {`{"list":["` + shown + `"]}`, ""},
		"in another text":      {`{"token":"x` + shown + `"}`, ""},
		"deeper":               {`{"token":{"value":"` + shown + `"}}`, ""},
		"replaced":             {`{"token":"none"}`, `{"list":["x","` + token + `"],"path":"a","token":"none"}`},
		"without the secret":   {`{"path":"c"}`, `{"list":["x","` + token + `"],"path":"c","token":"` + token + `"}`},
		"a placeholder of its": {`{"path":"[hidden: password]"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, toolward.Allow, nil, only(program(t, "answers", `{"params":`+test.params+`}`)))
			err := g.write(t, secret)
			if strings.Join(g.ran, "") != test.ran || (err == nil) != (test.ran != "") || err != nil && codeOf(err) != toolward.CodeHookError {
				t.Errorf("%v, ran %q", err, g.ran)
			}
		})
	}
}

func TestWebPlugin(t *testing.T) {
	const key = "a key of more than 16 bytes"
	t.Setenv("GUARD_KEY", key)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter, id string)
		code   toolward.Code
	}{
		"blocks":       {func(w http.ResponseWriter, id string) { fmt.Fprintf(w, `{"id":%q,"result":{"block":true}}`, id) }, toolward.CodeHookBlock},
		"passes":       {func(w http.ResponseWriter, id string) { fmt.Fprintf(w, `{"id":%q}`, id) }, ""},
		"another id":   {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"id":"x"}`) }, toolward.CodeHookError},
		"nothing":      {func(http.ResponseWriter, string) {}, toolward.CodeHookError},
		"no content":   {func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNoContent) }, toolward.CodeHookError},
		"server error": {func(w http.ResponseWriter, _ string) { http.Error(w, "no", http.StatusInternalServerError) }, toolward.CodeHookError},
		"redirect": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, toolward.CodeHookError},
		"too long": {func(w http.ResponseWriter, id string) {
			fmt.Fprintf(w, `{"id":%q,"error":"%s"}`, id, strings.Repeat("x", 2<<20))
		}, toolward.CodeHookError},
		"more after it": {func(w http.ResponseWriter, id string) { fmt.Fprintf(w, `{"id":%q}{}`, id) }, toolward.CodeHookError},
		"never answers": {func(http.ResponseWriter, string) { time.Sleep(600 * time.Millisecond) }, toolward.CodeHookTimeout},
		"drips for ever": {func(w http.ResponseWriter, _ string) {
			for range 60 {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, toolward.CodeHookTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				body, _ := io.ReadAll(r.Body)
				mac := hmac.New(sha256.New, []byte(key))
				fmt.Fprintf(mac, "%s.%s", r.Header.Get("X-Toolward-Timestamp"), body)
				if got := r.Header.Get("X-Toolward-Signature"); got != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
					t.Errorf("signature %q", got)
				}
				var question struct{ ID, Hook string }
				if err := json.Unmarshal(body, &question); err != nil || question.Hook != "before_tool_call" || r.Method != http.MethodPost {
					t.Errorf("%s %s: %v", r.Method, body, err)
				}
				test.answer(w, question.ID)
			}))
			defer server.Close()
			timeout := 5000
			if test.code == toolward.CodeHookTimeout {
				timeout = 200
			}
			g := newGuarded(t, toolward.Allow, nil, only(plugin.Entry{
				Kind: plugin.KindHTTP, URL: server.URL, SecretEnv: "GUARD_KEY", Hooks: []plugin.Name{plugin.BeforeToolCall}, TimeoutMs: &timeout,
			}))
			if err := g.write(t, `{"path":"a"}`); codeOf(err) != test.code || (err == nil) != (test.code == "") || asked.Load() != 1 {
				t.Errorf("%v; asked %d times\n%s", err, asked.Load(), g.log)
			}
		})
	}
}

// Without a key there is no signature, and without a signature no question: the server could not know who asks.
func TestWebPluginNeedsItsKey(t *testing.T) {
	t.Setenv("GUARD_KEY", "short")
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("asked") }))
	defer server.Close()
	g := newGuarded(t, toolward.Allow, nil, only(plugin.Entry{Kind: plugin.KindHTTP, URL: server.URL, SecretEnv: "GUARD_KEY", Hooks: []plugin.Name{plugin.BeforeToolCall}}))
	if err := g.write(t, `{}`); codeOf(err) != toolward.CodeHookError {
		t.Error(err)
	}
}

// The address of a server may hold a token. Neither log nor record tells it when the server cannot be reached.
func TestAWebPluginThatIsGoneKeepsItsAddress(t *testing.T) {
	t.Setenv("GUARD_KEY", "a key of more than 16 bytes")
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	g := newGuarded(t, toolward.Allow, nil, only(plugin.Entry{
		Kind: plugin.KindHTTP, URL: server.URL + "/ask?token=hidden-token", SecretEnv: "GUARD_KEY", Hooks: []plugin.Name{plugin.BeforeToolCall},
	}))
	if err := g.write(t, `{}`); codeOf(err) != toolward.CodeHookError {
		t.Error(err)
	}
	for _, record := range g.Auditor.Decisions() {
		for _, run := range record.Hooks {
			if strings.Contains(run.Detail, "hidden-token") {
				t.Errorf("recorded: %s", run.Detail)
			}
		}
	}
	if text := g.log.String(); strings.Contains(text, "hidden-token") || !strings.Contains(text, "ask the server of the plug-in") {
		t.Errorf("log: %s", text)
	}
}

// A reload leaves a program alone whose entry did not change, ends one that is gone, and lets a call that is under way
// keep what it began with.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	stays, goes := program(t, "notes", filepath.Join(dir, "stays")), program(t, "answers late")
	g := newGuarded(t, toolward.Allow, nil, plugin.Config{Entries: map[string]plugin.Entry{"stays": stays, "z-goes": goes}})
	ended := make(chan error)
	go func() { ended <- g.write(t, `{"path":"a"}`) }()
	if !eventually(5*time.Second, func() bool { raw, _ := os.ReadFile(filepath.Join(dir, "stays")); return len(raw) > 0 }) {
		t.Fatal("the call never came to the first plug-in")
	}
	if err := configure(g.runner, plugin.Config{Entries: map[string]plugin.Entry{"stays": stays}}); err != nil {
		t.Fatal(err)
	}
	if err := g.write(t, `{"path":"b"}`); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || strings.Join(g.ran, " ") != `{"path":"b"} {"path":"late"}` {
		t.Errorf("%v, ran %q", err, g.ran)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "stays"))
	if err != nil || !strings.Contains(string(raw), `"id":"2"`) {
		t.Errorf("the program was started anew: %s", raw)
	}
	if err := configure(g.runner, plugin.Config{Entries: map[string]plugin.Entry{"x": {}}}); err == nil {
		t.Error("a wrong configuration was taken")
	}
	if err := g.write(t, `{"path":"c"}`); err != nil {
		t.Errorf("after a wrong configuration: %v", err)
	}
	g.runner.Close()
	if err := g.write(t, `{"path":"d"}`); codeOf(err) != toolward.CodeHookError {
		t.Errorf("after the end: %v", err)
	}
}

// A program that anybody could replace is not started.
func TestProgramMustBeTrustworthy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guard")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o707); err != nil {
		t.Fatal(err)
	}
	e := program(t, "")
	for _, command := range []string{path, filepath.Dir(path), path + ".absent"} {
		e.Command = []string{command}
		*e.TimeoutMs = 50
		g := newGuarded(t, toolward.Allow, nil, only(e))
		if err := g.write(t, `{}`); err == nil || !strings.Contains(g.log.String(), command) {
			t.Errorf("%s: %v\n%s", command, err, g.log)
		}
	}
}
