package live_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/live"
)

// tab is one tab of a real Chromium, with cookies and storage of its own.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string // what the browser complained about: script errors, refused resources
}

// chromium starts one headless Chromium for a test and returns a way to open tabs.
func chromium(t *testing.T) func(t *testing.T) *tab {
	t.Helper()
	path := live.Need(t, live.Program("chromium", "chromium-browser", "google-chrome"))
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("font-render-hinting", "none"),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	browser, quit := chromedp.NewContext(allocator)
	t.Cleanup(quit)
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return func(t *testing.T) *tab {
		t.Helper()
		ctx, quit := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
		t.Cleanup(quit)
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		t.Cleanup(cancel)
		b := &tab{t: t, ctx: ctx}
		err := chromedp.Listen(ctx, func(event any) {
			switch e := event.(type) {
			case *cdplog.EventEntryAdded:
				b.trouble(e.Entry.Text)
			case *runtime.EventExceptionThrown:
				b.trouble(e.ExceptionDetails.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		b.size(1440, 900, "light")
		return b
	}
}

func (b *tab) trouble(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubles = append(b.troubles, text)
}

// untroubled fails the test if the browser complained, above all about something the content policy refused.
func (b *tab) untroubled() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.troubles {
		b.t.Errorf("the browser complains: %s", text)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) size(width, height int64, scheme string) {
	b.t.Helper()
	scale := 1.0
	if width < 500 {
		scale = 2
	}
	b.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// press presses keys wherever the focus is.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// eval evaluates an expression that yields a text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("String(%s)", expression)))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return text
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](fmt.Sprintf("String(%s)", expression)))
		if err == nil && text == "true" { // an error: the page is being replaced
			return
		}
	}
	b.t.Fatalf("never true: %s\nfocus is on %s\n%s", expression, b.eval(focused), b.eval("document.body.innerText"))
}

// shoot keeps a picture of the whole page.
func (b *tab) shoot(name string) []byte {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return png
}
