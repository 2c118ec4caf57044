package live_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/consoletest"
)

const (
	focused = `document.activeElement.textContent.trim() || document.activeElement.name || document.activeElement.tagName`
	ready   = `!document.querySelector(".card:not(.gone) [data-deny]").hasAttribute("aria-disabled")`
	liveNow = `document.querySelector("[data-live]").dataset.state == "on"`
)

// signIn signs a tab in by keyboard alone.
func (b *tab) signIn(w *consoletest.World) {
	b.t.Helper()
	b.signInAt(w.URL, consoletest.Passphrase)
}

func (b *tab) signInAt(address, passphrase string) {
	b.t.Helper()
	b.open(address)
	b.until(`document.activeElement.name == "passphrase"`)
	b.press(passphrase + "\r")
	b.until(liveNow)
}

// TestConsoleByKeyboard answers real calls in a real browser without a mouse.
func TestConsoleByKeyboard(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	b := open(t)
	b.signIn(w)

	t.Run("enter denies, but not within half a second", func(t *testing.T) {
		call := w.Call("coder", "exec", map[string]any{"command": "make one"})
		b.until(`document.activeElement.matches("[data-deny]")`) // the new call takes the idle focus, on Deny
		b.press("\r")
		if b.eval(ready) == "false" {
			w.AwaitPending(1) // too early: nothing happened
		}
		b.until(ready)
		b.press("\r")
		if result := <-call; result.Ran {
			t.Error("a denied call ran")
		}
		b.until(`document.querySelector(".said").textContent.startsWith("Denied by owner")`)
		b.until(`!document.querySelector(".card")`)
	})
	t.Run("enter never allows, space does", func(t *testing.T) {
		call := w.Call("coder", "exec", map[string]any{"command": "make two"})
		b.until(`!!document.querySelector(".card:not(.gone)")`)
		b.until(ready)
		b.do(chromedp.Focus(chromedp.CSS("[data-deny]")))
		b.press("\t\t")
		if got := b.eval(focused); got != "Allow once" {
			t.Fatalf("two tabs after Deny the focus is on %q", got)
		}
		b.press("\r")
		b.until(`document.querySelector("[data-announce]").textContent.includes("Enter does not allow")`)
		w.AwaitPending(1)
		b.press(" ")
		if result := <-call; !result.Ran {
			t.Errorf("an allowed call did not run: %v", result.Err)
		}
		b.until(`!document.querySelector(".card")`)
	})
	t.Run("a reason reaches the agent, and enter in it denies", func(t *testing.T) {
		call := w.Call("coder", "exec", map[string]any{"command": "make three"})
		b.until(`!!document.querySelector(".card:not(.gone)")`)
		b.until(ready)
		b.do(chromedp.Focus(chromedp.CSS("[data-deny]")))
		b.press("\tuse the package manager\r")
		if result := <-call; result.Ran || !strings.Contains(result.Err.Error(), "use the package manager") {
			t.Errorf("ran %v, %v", result.Ran, result.Err)
		}
		b.until(`!document.querySelector(".card")`)
	})
	t.Run("always says what it saves, and saves that", func(t *testing.T) {
		call := w.Call("coder", "write", map[string]any{"path": "docs/a.md", "content": "# A"})
		b.until(`!!document.querySelector(".card:not(.gone)")`)
		b.until(ready)
		b.do(chromedp.Focus(chromedp.CSS("[data-deny]")))
		b.press("\t\t\t")
		if got := b.eval(focused); got != "Always" {
			t.Fatalf("three tabs after Deny the focus is on %q", got)
		}
		b.press(" ")
		b.until(`document.querySelector("details.always").open`)
		words := b.eval(`document.querySelector(".saves .words").textContent`)
		b.until(`document.querySelector(".saves .past")?.textContent.includes("In the last 7 days")`) // which makes it inert for a moment
		b.until(ready)
		b.press("\t15\r\t3\r") // for 15 minutes, and 3 calls; Enter does nothing here
		if waiting := w.AwaitPending(1); len(waiting) != 1 {
			t.Fatal("Enter has answered")
		}
		b.until(`document.querySelector("[data-announce]").textContent.includes("Enter does not allow")`)
		b.press("\t ")
		if result := <-call; !result.Ran {
			t.Fatalf("an allowed call did not run: %v", result.Err)
		}
		grants := w.Approvals.Grants()
		if len(grants) != 1 {
			t.Fatalf("%d grants were saved", len(grants))
		}
		if grants[0].MaxUses != 3 || grants[0].ExpiresMs-grants[0].CreatedMs != (15*time.Minute).Milliseconds() {
			t.Errorf("saved for %d calls and %d ms", grants[0].MaxUses, grants[0].ExpiresMs-grants[0].CreatedMs)
		}
		if !strings.HasPrefix(grants[0].Text[1:], strings.TrimSuffix(words[1:], ".")+"; ") || !strings.Contains(words, filepath.Join(w.Workspace, "docs")) {
			t.Errorf("shown %q, saved %q", words, grants[0].Text)
		}
		b.until(`!document.querySelector(".card")`)
	})
	t.Run("j and k move between calls", func(t *testing.T) {
		for i := range 3 {
			w.Call("coder", "exec", map[string]any{"command": fmt.Sprint("make many ", i)})
			w.AwaitPending(i + 1)
		}
		b.until(`document.querySelectorAll(".card:not(.gone)").length == 3`)
		at := `String([...document.querySelectorAll(".card")].findIndex((c) => c.contains(document.activeElement)))`
		b.do(chromedp.Focus(chromedp.CSS("[data-deny]")))
		for _, step := range []struct{ key, want string }{{"j", "1"}, {"j", "2"}, {"j", "2"}, {"k", "1"}} {
			b.press(step.key)
			if got := b.eval(at); got != step.want {
				t.Errorf("after %q the focus is in call %s, want %s", step.key, got, step.want)
			}
		}
		for i := range 3 {
			b.until(`document.activeElement.matches("[data-deny]") && !document.activeElement.hasAttribute("aria-disabled")`)
			b.press("\r")
			w.AwaitPending(2 - i)
		}
	})
	b.untroubled()
}

// TestConsoleClickThrough clicks where a button is about to appear.
func TestConsoleClickThrough(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	b := open(t)
	b.signIn(w)
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	b.until(`!!document.querySelector(".card")`)
	clicked := time.Now()
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	if time.Since(clicked) < 300*time.Millisecond {
		w.AwaitPending(1)
	}
	b.until(ready)
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
	b.untroubled()
}

// TestConsoleInTwoBrowsers answers in one browser and looks at the other.
func TestConsoleInTwoBrowsers(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	first, second := open(t), open(t)
	first.signIn(w)
	second.signIn(w)
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	for _, b := range []*tab{first, second} {
		b.until(`document.querySelectorAll(".card").length == 1`)
	}
	first.until(ready)
	first.do(chromedp.Click(chromedp.CSS("[data-deny]")))
	if result := <-call; result.Ran {
		t.Error("a denied call ran")
	}
	second.until(`document.querySelector(".said")?.textContent == "Denied by owner (console)"`)
	second.until(`!document.querySelector(".card")`)
	second.until(`document.querySelector("[data-log]").textContent.includes("Denied by owner (console)")`)
	first.untroubled()
	second.untroubled()

	t.Run("the front page leads a signed-in browser on", func(t *testing.T) {
		first.open(w.URL)
		first.until(`location.pathname.startsWith("/c/")`)
	})
	t.Run("a link to a call leads a signed-in browser there", func(t *testing.T) {
		w.Call("coder", "exec", map[string]any{"command": "make linked"})
		id := w.AwaitPending(1)[0].ID
		first.open(w.URL + "/approvals/" + id)
		first.until(`location.pathname.startsWith("/c/") && location.pathname.endsWith("/approvals/` + id + `")`)
		first.until(ready)
		first.do(chromedp.Click(chromedp.CSS("[data-deny]")))
		w.AwaitPending(0)
		first.open(w.URL)
	})
	t.Run("signing out leads to the door and stays there", func(t *testing.T) {
		first.until(liveNow)
		first.do(chromedp.Click(chromedp.CSS(`form[action$="/sign-out"] button`)))
		first.until(`!!document.querySelector("input[name=passphrase]") && location.pathname == "/"`)
		first.open(w.URL)
		first.until(`!!document.querySelector("input[name=passphrase]")`)
	})
}

// TestConsoleWithoutScript sets up, reads and answers with script switched off.
func TestConsoleWithoutScript(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{Fresh: true})
	b := open(t)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open(w.URL)
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=code]"), strings.ToLower(w.People.SetupCode())))
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=passphrase]"), consoletest.Passphrase))
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=again]"), consoletest.Passphrase+"\r"))
	b.do(chromedp.WaitVisible(chromedp.CSS(".empty")))
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	w.AwaitPending(1)
	b.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(".card")))
	shown := time.Now()
	for time.Since(shown) < 600*time.Millisecond {
		b.do(chromedp.WaitVisible(chromedp.CSS(".card")))
	}
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
	b.do(chromedp.WaitVisible(chromedp.CSS(".notice")))

	// Always, for two later calls; and taken back.
	call = w.Call("coder", "write", map[string]any{"path": "docs/a.md", "content": "# A"})
	w.AwaitPending(1)
	b.do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(".card")))
	for shown = time.Now(); time.Since(shown) < 600*time.Millisecond; {
		b.do(chromedp.WaitVisible(chromedp.CSS(".card")))
	}
	b.do(
		chromedp.Click(chromedp.CSS("details.always > summary")),
		chromedp.SendKeys(chromedp.CSS("input[name=uses]"), "2"),
		chromedp.Click(chromedp.CSS(`button[value="allow-always 0"]`)),
	)
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
	b.do(
		chromedp.WaitVisible(chromedp.CSS(".notice")),
		chromedp.Click(chromedp.CSS(`.nav a[href$="/grants"]`)),
		chromedp.WaitVisible(chromedp.CSS(".matches")),
	)
	if grants := w.Approvals.Grants(); len(grants) != 1 || grants[0].MaxUses != 2 {
		t.Errorf("saved: %+v", grants)
	}
	b.do(chromedp.Click(chromedp.CSS(`form[action$="/revoke"] button`)), chromedp.WaitVisible(chromedp.CSS(".empty")))
	if grants := w.Approvals.Grants(); len(grants) != 0 {
		t.Errorf("still granted: %+v", grants)
	}
}
