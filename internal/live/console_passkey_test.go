package live_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/consoletest"
)

// securityKey gives a tab an authenticator that holds passkeys and knows its owner.
func (b *tab) securityKey() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.t.Fatal(err)
	}
	_, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
		Options: &webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestConsolePasskey makes a passkey in a real browser, signs in with it and answers a call.
func TestConsolePasskey(t *testing.T) {
	open := chromium(t)
	w := consoletest.New(t, consoletest.Options{})
	home := strings.Replace(w.URL, "127.0.0.1", "localhost", 1)
	b := open(t)
	b.securityKey()
	b.signInAt(home, consoletest.Passphrase)
	base := b.eval("document.body.dataset.base")

	b.open(home + base + "/passkeys")
	b.until(`!document.querySelector("[data-add]").hidden`)
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=name]"), "test key"), chromedp.SendKeys(chromedp.CSS("input[name=passphrase]"), "not the passphrase\r"))
	b.until(`document.querySelector("[data-trouble]").textContent.includes("wrong passphrase")`)
	b.until(`!document.querySelector("[data-add] button").disabled`)
	b.mu.Lock()
	b.troubles = nil // the browser's own note about the refusal
	b.mu.Unlock()
	b.eval(`document.querySelector("input[name=passphrase]").value = ""`)
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=passphrase]"), consoletest.Passphrase+"\r"))
	b.until(`!!document.querySelector("form[action$='/remove']")`)
	b.until(`document.querySelector(".notice")?.textContent.includes("is added")`)

	b.do(chromedp.Click(chromedp.CSS(`form[action$="/sign-out"] button`)))
	b.until(`location.pathname == "/" && !!document.querySelector("[data-passkey]:not([hidden])")`)
	b.do(chromedp.Click(chromedp.CSS("[data-ask]")))
	b.until(liveNow)
	call := w.Call("coder", "exec", map[string]any{"command": "make"})
	b.until(`!!document.querySelector(".card")`)
	b.until(ready)
	b.do(chromedp.Click(chromedp.CSS(`button[value="allow-once"]`)))
	if result := <-call; !result.Ran {
		t.Errorf("an allowed call did not run: %v", result.Err)
	}

	// A second passkey on the same device is refused by the device; removing the first ends this very sign-in.
	base = b.eval("document.body.dataset.base")
	b.open(home + base + "/sign-ins")
	b.until(`document.body.innerText.includes("passkey test key")`)
	b.open(home + base + "/passkeys")
	b.until(`!document.querySelector("[data-add]").hidden`)
	b.do(chromedp.SendKeys(chromedp.CSS("[data-add] input[name=name]"), "again\r"))
	b.until(`document.querySelector("[data-trouble]").textContent.includes("holds a passkey")`)
	b.do(chromedp.Click(chromedp.CSS(`form[action$="/remove"] button`)))
	b.until(`location.pathname == "/" && !!document.querySelector("input[name=passphrase]")`)
	if b.eval(`!!document.querySelector("[data-passkey]")`) == "true" {
		t.Error("the door offers passkeys though there are none")
	}
	b.untroubled()

	t.Run("at an address the page says why not", func(t *testing.T) {
		b := open(t)
		b.signIn(w)
		b.open(w.URL + b.eval("document.body.dataset.base") + "/passkeys")
		b.until(`document.body.innerText.includes("Open the console at ` + home + ` to use them")`)
		b.untroubled()
	})
}
