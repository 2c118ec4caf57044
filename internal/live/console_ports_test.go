package live_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/toolward/toolward/internal/live"
)

// listensInside is a server of an agent that says which cookies it was given, and has a page that tries the console's doors.
const listensInside = `import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "toolward=planted; Path=/")
        self.end_headers()
        said = repr(self.headers.get("Cookie", "")) + repr(self.headers.get("Referer", ""))
        self.wfile.write(("<body><p>got " + said + "</p>").encode())
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`

// TestConsolePorts opens what an agent serves, from the console, in the browser that is signed in there. The page behind the forward gets
// neither the sign-in nor the console's path, and even with the path it would change nothing: it is another origin on the same host.
func TestConsolePorts(t *testing.T) {
	live.Need(t, live.Program("python3"))
	open := chromium(t)
	g := newGuardedMachine(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native", "degradeOk": ["cgroup"]}}}}`)
	writeFile(t, filepath.Join(g.Workspace, "server.py"), listensInside)
	session := g.connect(t)
	g.call(t, session, "exec", map[string]any{"command": "python3 server.py 8137", "background": true})
	b := open(t)
	b.signInAt(g.URL, live.Passphrase)
	console := consoleOf(b, g.URL)
	b.open(console + "/sandboxes")
	b.do(chromedp.Click(chromedp.CSS(".box h2 a")))
	b.until(liveNow)
	b.until(`/^8137\s+python3/.test(document.querySelector("[data-ports]").innerText)`)
	page := b.eval("location.href")
	// The section is made anew as things change: between two looks of a test the button may be another one.
	b.eval(`(document.querySelector("[data-ports] summary").click(), document.querySelector("[data-ports] details button").click(), "")`)
	b.until(`document.body.innerText.includes("Port 8137 is open on this machine")`)
	at := b.eval(`document.querySelector("[data-ports] a").href`)
	if at != "http://127.0.0.1:8137/" {
		t.Errorf("open at %s", at)
	}

	b.untroubled()
	b.eval("(location.href = " + quoteJS(at) + ")") // from the console's page, as its link leads there
	b.until(`document.body.innerText.startsWith("got ")`)
	if got := b.eval("document.body.innerText"); got != "got ''''" {
		t.Errorf("the agent's server %s", got)
	}
	name := page[strings.Index(page, "name=")+len("name="):]
	name, _, _ = strings.Cut(name, "&")
	b.eval(`(window.said = "", Promise.all([
		fetch(` + quoteJS(console+"/sandboxes/stop") + `, {method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({name: ` + quoteJS(name) + `, seen: "x"})}),
		fetch(` + quoteJS(console+"/v1/sandboxes/"+name+"/stop") + `, {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": "text/plain"}, body: "{}"}),
	]).then((all) => { window.said = all.map((r) => r.type + r.status).join() }, (why) => { window.said = "refused " + why }), 1)`)
	b.until(`window.said != ""`)
	b.open(page)
	b.until(`document.querySelector("[data-box]").innerText.includes("in use")`) // nothing was stopped
	b.eval(`(document.querySelector("[data-ports] form button").click(), "")`)
	b.until(`document.body.innerText.includes("Port 8137 is no longer open on this machine")`)
}
