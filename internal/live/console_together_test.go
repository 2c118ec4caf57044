package live_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/live"
)

// office is two browsers and a terminal in front of one gateway.
type office struct {
	t        *testing.T
	m        *live.Machine
	terminal *consolePane
	browsers [2]*tab
}

// cardWith is the waiting call with this command, as an expression of the script.
func cardWith(command string) string {
	return `[...document.querySelectorAll(".card:not(.gone)")].find((c) => c.querySelector(".call pre")?.textContent.includes(` + quoteJS(command) + `))`
}

// waits returns once every surface shows a call, and its digest, which is the same in both browsers.
func (o *office) waits(command string) (digest string) {
	o.t.Helper()
	var digests [2]string
	for i, b := range o.browsers {
		b.until(`!!` + cardWith(command) + ` && !` + cardWith(command) + `.querySelector("[data-deny]").hasAttribute("aria-disabled")`)
		digests[i] = b.eval(cardWith(command) + `.querySelector(".answer .foot .mono").textContent`)
	}
	if digests[0] != digests[1] || len(digests[0]) != 12 {
		o.t.Errorf("the browsers show the digests %q", digests)
	}
	return digests[0]
}

// tells waits until every surface says what became of a call.
func (o *office) tells(command, said string) {
	o.t.Helper()
	for _, b := range o.browsers {
		b.until(`[...document.querySelectorAll("[data-log] li")].some((e) => e.textContent.includes(` + quoteJS(command) + `) && e.textContent.includes(` + quoteJS(said) + `))`)
	}
}

// answers presses a button of a call in a browser.
func (o *office) answers(b *tab, command, decision string) {
	o.t.Helper()
	b.eval(`(() => { document.querySelector("#chosen")?.removeAttribute("id"); ` + cardWith(command) + `.querySelector("form[data-answer] button[value=` + decision + `]").id = "chosen"; return ""; })()`)
	b.do(chromedp.Click(chromedp.CSS("#chosen")))
}

// comesBack signs in again on every surface, where each of them has come back to by itself.
func (o *office) comesBack() {
	o.t.Helper()
	o.terminal.See("as it does when the gateway restarts")
	o.terminal.signsIn()
	for _, b := range o.browsers {
		b.until(`document.activeElement?.name == "passphrase"`)
		b.press(live.Passphrase + "\r")
		b.until(liveNow)
	}
}

func (o *office) exists(marker string) bool {
	_, err := os.Stat(filepath.Join(o.m.Workspace, marker))
	return err == nil
}

// TestConsolesTogether: all surfaces see a call, the first answer wins, and the others show it. After the gateway was stopped,
// or killed, what waits is there again.
func TestConsolesTogether(t *testing.T) {
	live.Need(t, live.Program("tmux"))
	open := chromium(t)
	m := live.NewQuickMachine(t, `{"teg": {"preset": "workspace", "approval": {"timeoutMs": 600000}}}`)
	m.Start()
	o := &office{t: t, m: m, terminal: openConsole(t, m), browsers: [2]*tab{open(t), open(t)}}
	for _, b := range o.browsers {
		b.signInAt(m.URL, live.Passphrase)
	}
	agent := dialStdio(t, m, "coder")

	t.Run("a browser is first", func(t *testing.T) {
		o.t = t
		call := asking(t.Context(), agent, "exec", touching("by-browser"))
		o.terminal.reads("│ touch by-browser")
		o.waits("touch by-browser")
		o.answers(o.browsers[0], "touch by-browser", "deny")
		o.browsers[1].until(`document.querySelector(".said")?.textContent == "Denied by owner (console)"`)
		o.terminal.See("Denied by owner (console)", "Nothing waits.")
		o.tells("touch by-browser", "Denied by owner (console)")
		if r := answer(t, call); !r.refused() {
			t.Errorf("a denied call was answered %q", r.said())
		}
		mustNotExist(t, filepath.Join(m.Workspace, "by-browser"))
	})
	t.Run("the terminal is first", func(t *testing.T) {
		o.t = t
		call := asking(t.Context(), agent, "exec", touching("by-terminal"))
		o.terminal.reads("│ touch by-terminal")
		o.waits("touch by-terminal")
		o.terminal.allows()
		for _, b := range o.browsers {
			b.until(`document.querySelector(".said")?.textContent == "Allowed once by owner (terminal)"`)
		}
		o.tells("touch by-terminal", "Allowed by owner (terminal)")
		if r := answer(t, call); r.refused() {
			t.Errorf("an allowed call was answered %q", r.said())
		}
		if !o.exists("by-terminal") {
			t.Error("an allowed call did not run")
		}
	})

	g := m.SignedIn()
	token, status := g.Run("toolward token create --agent coder --workspace " + m.Workspace + " 2> /dev/null")
	if status != 0 {
		t.Fatalf("token create: %d\n%s", status, token)
	}
	m.Listen = strings.TrimPrefix(m.URL, "http://") // where the browsers look for it
	for _, end := range []struct {
		name string
		of   func()
	}{{"stopped", func() { m.Stop() }}, {"killed", m.Kill}} {
		t.Run("the gateway is "+end.name, func(t *testing.T) {
			o.t = t
			o.restarts(token, end.name, end.of)
		})
	}
}

// restarts ends the gateway, and another one begins, while two calls wait: one of a client that comes back for its answer, and
// one of a client whose connection ends with the gateway.
func (o *office) restarts(token, name string, end func()) {
	o.t.Helper()
	kept, lost := "kept-"+name, "lost-"+name
	first, err := newestHTTP(o.t, o.m.URL, token).call(o.t.Context(), "exec", touching(kept), "")
	if err != nil || first.Result.RequestState == "" {
		o.t.Fatalf("first round: %v, %+v", err, first)
	}
	gone := asking(o.t.Context(), dialStdio(o.t, o.m, "coder"), "exec", touching(lost))
	digest := o.waits("touch " + kept)
	o.waits("touch " + lost)
	o.terminal.See("│ touch "+kept, "Queue (2)")

	end()
	for _, b := range o.browsers {
		b.until(`document.querySelector("[data-stale]")?.hidden === false`)
	}
	o.terminal.See("THE GATEWAY DOES NOT ANSWER; trying again.", "│ touch "+kept)
	select {
	case a := <-gone: // the connection, or what its other end says of it
		if a.err == nil && !a.reply.refused() {
			o.t.Errorf("a call that nobody answered: %q", a.reply.said())
		}
	case <-time.After(time.Minute):
		o.t.Error("the call of a gateway that has ended does not end")
	}
	o.m.Start()
	back := make(chan answered, 1)
	go func() { // well within the 30 seconds that a client has to come back
		r, err := newestHTTP(o.t, o.m.URL, token).call(o.t.Context(), "exec", touching(kept), first.Result.RequestState)
		back <- answered{r, err}
	}()
	o.comesBack()
	if again := o.waits("touch " + kept); again != digest {
		o.t.Errorf("the digest was %q, is %q", digest, again)
	}
	o.terminal.See("│ touch " + kept)
	o.forgets(lost)

	o.answers(o.browsers[1], "touch "+kept, "allow-once")
	o.tells("touch "+kept, "Allowed by owner (console)")
	o.terminal.See("Allowed once by owner (console)", "Nothing waits.")
	if r := answer(o.t, back); r.refused() || r.Result.RequestState != "" {
		o.t.Errorf("the call that was allowed after the restart: %q, %+v", r.said(), r.Result)
	}
	if !o.exists(kept) {
		o.t.Error("the call that was allowed after the restart did not run")
	}
	if o.exists(lost) {
		o.t.Error("a call that nobody allowed ran")
	}
}

// forgets waits until the question of a client that did not come back has ended, and left every surface.
func (o *office) forgets(marker string) {
	o.t.Helper()
	person, err := signInAtConsole(o.t.Context(), o.m.URL)
	if err != nil {
		o.t.Fatal(err)
	}
	said := ""
	for deadline := time.Now().Add(2 * time.Minute); said != "The agent went away; the call did not run"; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			o.t.Fatalf("the question of a client that did not come back: %q", said)
		}
		var recent struct {
			Approvals []struct {
				Said    string
				Request struct{ Command string }
			}
		}
		if err := person.api(o.t.Context(), http.MethodGet, "/v1/approvals?state=recent", nil, &recent); err != nil {
			o.t.Fatal(err)
		}
		for _, a := range recent.Approvals {
			if strings.Contains(fmt.Sprint(a.Request.Command), marker) {
				said = a.Said
			}
		}
	}
	for _, b := range o.browsers {
		b.until(`!` + cardWith("touch "+marker))
	}
	o.terminal.See("Queue (1)")
}
