package live_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/live"
)

// axe is a checker of accessibility that others wrote. Its version is fixed: new rules come by a change here.
var axe = live.Package("axe", "axe-core", "4.14.1")

// TestConsoleIsAccessible lets axe-core look at every page, wide and light, narrow and dark. Nothing serious may be found.
func TestConsoleIsAccessible(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(live.Need(t, axe), "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	open := chromium(t)
	for _, p := range append(consolePages(t, open), policyPages(t, open)...) {
		for _, screen := range []struct {
			name, scheme  string
			width, height int64
		}{{"desktop", "light", 1440, 900}, {"phone", "dark", 390, 844}} {
			p.tab.size(screen.width, screen.height, screen.scheme)
			p.tab.open(p.address)
			p.tab.do(chromedp.WaitVisible(chromedp.CSS("main")))
			p.tab.until(`[...document.querySelectorAll("[aria-disabled]")].length == 0`) // what is inert for a moment is dim for a moment
			_, err := chromedp.Run(p.tab.ctx, chromedp.Evaluate[string](string(source)+`; axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((r) => {
  window.axeFound = r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => v.id + " (" + v.impact + "): " + v.help + "\n" + v.nodes.slice(0, 3).map((n) => "  " + n.html.slice(0, 160) + "\n  " + n.failureSummary).join("\n")).join("\n");
  window.axeRules = r.passes.length;
}, (e) => { window.axeFound = String(e); }); ""`))
			if err != nil {
				text := err.Error() // it quotes all of axe-core
				t.Fatalf("axe-core does not run: %s", text[max(0, len(text)-300):])
			}
			p.tab.until(`window.axeFound !== undefined`)
			if found := p.tab.eval("window.axeFound"); found != "" {
				t.Errorf("%s on a %s:\n%s", p.name, screen.name, found)
			}
			if rules := p.tab.eval("window.axeRules"); rules == "0" || rules == "undefined" {
				t.Errorf("%s: axe looked at nothing", p.name)
			}
		}
	}
}
