package live_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/consoletest"
)

// submit puts the question of a program that asks by itself.
func submit(t *testing.T, w *consoletest.World, command, binding string, timeout time.Duration) *approval.Record {
	t.Helper()
	r, err := w.Approvals.Submit(t.Context(), approval.Submission{
		Kind: approval.KindExec, Binding: binding, Timeout: timeout, Connection: "wire",
		Details: approval.Details{Tool: "exec", Title: "Run: " + command, Command: command, Digest: strings.Repeat("5a", 32), Severity: toolward.Info},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const shownCalls = `[...document.querySelectorAll(".card:not(.gone)")].map((c) => c.dataset.id).join(" ")`

// TestConsoleQueue looks at the live queue in a real browser: its order, its groups, identical calls, deadlines, keys.
func TestConsoleQueue(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	b := open(t)
	b.signIn(w)
	base := b.eval("document.body.dataset.base")

	t.Run("critical calls come first, and sessions stand apart", func(t *testing.T) {
		b.open(w.URL + base + "/?order=risk&group=session")
		b.until(liveNow)
		w.Call("coder", "exec", map[string]any{"command": "make one"})
		one := w.AwaitPending(1)[0].ID
		b.until(shownCalls + ` == "` + one + `"`)
		w.Call("researcher", "read", map[string]any{"path": "/home/ada/.ssh/id_ed25519"})
		b.until(`document.querySelectorAll(".card:not(.gone)").length == 2`)
		w.Call("coder", "read", map[string]any{"path": "/home/ada/.ssh/config"})
		b.until(`document.querySelectorAll(".card:not(.gone)").length == 3`)
		const heads = `[...document.querySelectorAll(".queue > [data-session-head]")].map((h) => h.querySelector(".mono").textContent).join(" ")`
		if got := b.eval(heads); got != "agent:researcher:main agent:coder:main" {
			t.Errorf("sessions stand as %q", got)
		}
		if got := b.eval(`[...document.querySelectorAll(".card")].map((c) => c.dataset.rank).join(" ")`); got != "0 0 2" {
			t.Errorf("the ranks are %q", got)
		}
		live := b.eval(shownCalls)
		b.open(w.URL + base + "/") // the order is remembered
		b.until(`location.search == "?order=risk&group=session"`)
		b.until(liveNow)
		if got := b.eval(shownCalls); got != live {
			t.Errorf("a fresh page shows %q, the live one showed %q", got, live)
		}
		for range 3 {
			b.until(`document.querySelector(".card:not(.gone) [data-deny]") && ` + ready)
			b.do(chromedp.Click(chromedp.CSS(".card:not(.gone) [data-deny]")))
			b.until(`!document.querySelector(".card.gone")`)
		}
		w.AwaitPending(0)
		b.until(heads + ` == ""`)
		b.open(w.URL + base + "/?order=arrival")
		b.until(liveNow)
	})
	t.Run("identical calls are denied at once", func(t *testing.T) {
		for i := range 3 {
			submit(t, w, "make", "same", time.Minute)
			b.until(fmt.Sprintf(`document.querySelectorAll(".card:not(.gone)").length == %d`, i+1))
		}
		submit(t, w, "make", "another", time.Minute)
		b.until(`document.querySelectorAll(".card:not(.gone)").length == 4`)
		if got := b.eval(`[...document.querySelectorAll("form[data-batch]")].map((f) => f.hidden ? 0 : f.querySelectorAll("[name=call]").length).join(" ")`); got != "3 0 0 0" {
			t.Errorf("forms for several calls: %q", got)
		}
		b.until(`[...document.querySelectorAll(".batch button")].every((x) => !x.hasAttribute("aria-disabled"))`)
		b.shoot("identical")
		b.do(chromedp.Click(chromedp.CSS(`.batch button[value="deny"]`)))
		left := w.AwaitPending(1)
		if left[0].Binding != "another" {
			t.Error("another call was denied with them")
		}
		b.until(`document.querySelectorAll(".said.denied").length == 3`)
		b.until(shownCalls + ` == "` + left[0].ID + `"`)
		b.until(ready)
		b.do(chromedp.Click(chromedp.CSS(".card:not(.gone) [data-deny]")))
		w.AwaitPending(0)
		b.until(`!document.querySelector(".card")`)
	})
	t.Run("a call whose time is over leaves", func(t *testing.T) {
		submit(t, w, "make late", "late", 2*time.Second)
		b.until(`/^[12] s left$/.test(document.querySelector("[data-left]")?.textContent)`)
		b.until(`!document.querySelector(".card .answer")`)
		over := time.Now()
		b.until(`!document.querySelector(".card")`)
		if took := time.Since(over); took > 2*time.Second {
			t.Errorf("it stayed for %s", took)
		}
		w.AwaitPending(0)
	})
	t.Run("a question mark shows the keys, and nothing else moves meanwhile", func(t *testing.T) {
		call := w.Call("coder", "exec", map[string]any{"command": "make keys"})
		b.until(`document.activeElement.matches("[data-deny]")`)
		b.press("?")
		b.until(`document.querySelector("[data-keysheet]").open`)
		b.shoot("keys")
		b.press("j\r") // Enter closes the sheet, whose button has the focus
		b.until(`!document.querySelector("[data-keysheet]").open`)
		w.AwaitPending(1)
		b.press("e")
		b.until(`document.querySelector("details.more").open`)
		b.until(ready)
		b.do(chromedp.Focus(chromedp.CSS("[data-deny]")))
		b.press("\r")
		<-call
	})
	b.untroubled()
}
