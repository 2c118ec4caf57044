package live_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/consoletest"
)

// TestConsoleHostileText shows people a command that wants to look like another one, or to be part of the page: what is on
// the screen is true, whole and only text. A command that nobody could read is never asked about.
func TestConsoleHostileText(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{Timeout: 10 * time.Minute})
	b := open(t)
	b.signIn(w)
	const ending = " ; rm -rf ~ # the end"
	evil := "echo \u202etxt.exe \u2066\u200b\u00ad\x1b[2K\x07 </pre></template><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> "
	long := evil + strings.Repeat("padding ", (16<<10-len(evil)-len(ending))/8) + ending
	if len(long) > 16<<10 {
		t.Fatalf("%d bytes", len(long))
	}
	if result := <-w.Call("coder", "exec", map[string]any{"command": evil + strings.Repeat("padding ", 100<<10/8)}); result.Ran {
		t.Error("a command of 100 KiB ran")
	}
	w.AwaitPending(0)
	call := w.Call("coder", "exec", map[string]any{"command": long})
	w.AwaitPending(1)
	for _, fresh := range []bool{false, true} { // by the event stream, and by the page
		if fresh {
			b.do(chromedp.Reload())
			b.until(liveNow)
		}
		b.until(`document.querySelectorAll(".card").length == 1`)
		const command = `document.querySelector(".card .call pre").textContent`
		for _, want := range []string{"⟦U+202E⟧", "⟦U+2066⟧", "⟦U+200B⟧", "<script>document.title", "<img src=x", "rm -rf ~ # the end"} {
			if b.eval(`String(`+command+`.includes(`+quoteJS(want)+`))`) != "true" {
				t.Errorf("fresh %v: the screen does not show %q", fresh, want)
			}
		}
		if got := b.eval(`String(/[\u202e\u2066\u200b\u00ad\u001b\u0007]/.test(document.body.textContent))`); got != "false" {
			t.Errorf("fresh %v: the page holds what cannot be seen", fresh)
		}
		if got := b.eval(`document.title`); strings.Contains(got, "owned") || b.eval(`document.querySelectorAll(".card script, .card img").length`) != "0" {
			t.Errorf("fresh %v: text became part of the page: %s", fresh, got)
		}
		// The end can be reached: it is below the fold of the box, not cut from it.
		if b.eval(`(() => { const box = document.querySelector(".card .call pre"); box.scrollTop = box.scrollHeight; return box.scrollWidth <= box.clientWidth && box.scrollTop > 0; })()`) != "true" {
			t.Errorf("fresh %v: the end of the command cannot be reached", fresh)
		}
		b.shoot("hostile-" + map[bool]string{false: "live", true: "page"}[fresh])
	}
	if got := b.eval(`String(!!document.querySelector("details.always"))`); got != "false" {
		t.Error("a command of which not all arguments are shown can be allowed for ever")
	}
	// Nor can it be allowed before that.
	b.do(chromedp.Reload())
	b.until(liveNow)
	b.until(ready)
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	b.until(`document.querySelector(".card .error").textContent.includes("scroll to its end first")`)
	w.AwaitPending(1)
	b.shoot("hostile-unread")
	b.eval(`(() => { const box = document.querySelector(".card .call pre"); box.scrollTop = box.scrollHeight; return ""; })()`)
	b.until(`!document.querySelector(".call[data-rest]")`)
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	w.AwaitPending(0)
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}
	// A file of that size is asked about by its beginning, and the screen says that there is more.
	call = w.Call("coder", "write", map[string]any{"path": "docs/a.md", "content": evil + strings.Repeat("padding ", 100<<10/8) + ending})
	w.AwaitPending(1)
	b.until(`document.querySelectorAll(".card:not(.gone)").length == 1 && ` + ready)
	const file = `document.querySelector(".card:not(.gone)")`
	for want, why := range map[string]string{
		file + `.querySelector(".cut").textContent.includes("longer than what is shown")`: "it does not say that there is more",
		file + `.textContent.includes("⟦U+202E⟧")`:                                        "what turns the text is not shown",
		`!/[\u202e\u2066\u200b\u00ad\u001b\u0007]/.test(document.body.textContent)`:       "the page holds what cannot be seen",
		`!document.title.includes("owned") && !` + file + `.querySelector("script, img")`: "text became part of the page",
		`document.documentElement.scrollWidth <= innerWidth`:                              "it is wider than the screen",
	} {
		if b.eval(`String(`+want+`)`) != "true" {
			t.Errorf("a file of 100 KiB: %s", why)
		}
	}
	b.shoot("hostile-file")
	b.do(chromedp.Click(chromedp.CSS(".card:not(.gone) [data-deny]")))
	if result := <-call; result.Ran {
		t.Error("a denied call ran")
	}
	b.untroubled()
}

// quoteJS writes a text as a literal of the script.
func quoteJS(text string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`", "$", "\\$").Replace(text) + "`"
}
