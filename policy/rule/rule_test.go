package rule

import (
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

var someFacts = toolward.Facts{
	Action: "send", Command: "git push", TargetID: "worker", Elevated: true, Mutates: true, Deletes: 2, BrowserOn: "host", Scope: "tree",
	URLs: []string{"https://api.example.org/v1"}, Hosts: []string{"https://api.example.org:443"}, Recipients: []string{"slack:default:c1"}, Outbound: []string{"hello"},
	Targets: []toolward.Target{
		{Path: "a", Real: "/ws/a", Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 1},
		{Path: "../b", Real: "/srv/b", Op: toolward.OpDelete, Zone: "outside", Kind: "missing", Left: true},
	},
}

func TestConditions(t *testing.T) {
	r := callOf(t, `{"path":"a","n":5,"f":1.5,"big":18446744073709551615,"huge":1e400,"flag":true,"none":null,"deep":{"x":[2,{"y":"z"}]},"list":["foo1","bar"]}`, someFacts)
	for _, c := range []struct {
		text string
		want string // yes, no or fails
	}{
		{`true`, "yes"},
		{`params.path == "a"`, "yes"},
		{`params["path"] == "a"`, "yes"},
		{`"path" in params && !("other" in params)`, "yes"},
		{`size(params) == 9`, "yes"},
		{`params.exists(name, name == "deep")`, "yes"},
		{`params.n == 5 && params.n > 4 && params.n < 5.5`, "yes"},
		{`params.f == 1.5`, "yes"},
		{`params.big == 18446744073709551615u`, "yes"},
		{`params.huge > 1.0e308`, "yes"},
		{`params.flag == true`, "yes"},
		{`params.none == null`, "yes"},
		{`params.deep.x[0] == 2 && params.deep.x[1].y == "z"`, "yes"},
		{`params.list.exists(x, x.startsWith("foo"))`, "yes"},
		{`params.list.map(x, x + "!") == ["foo1!", "bar!"]`, "yes"},
		{`params.path == 1`, "no"},
		{`has(params.nothing)`, "no"},
		{`has(params.nothing) && params.nothing == 1`, "no"},
		{`params.nothing == 1`, "fails"},
		{`params.nothing == 1 || true`, "yes"},
		{`params.n.startsWith("a")`, "fails"},
		{`params.deep.x[7] == 1`, "fails"},
		{`1 / (params.n - 5) == 1`, "fails"},
		{`level == "normal" && level != "lockdown" && tool == "write"`, "yes"},
		{`facts.action == "send" && facts.command.contains("push") && facts.target == "worker"`, "yes"},
		{`facts.elevated && facts.mutates && facts.deletes == 2 && facts.browser == "host" && facts.scope == "tree"`, "yes"},
		{`facts.place == "outside"`, "yes"},
		{`facts.paths == ["/ws/a", "/srv/b"]`, "yes"},
		{`facts.targets.exists(t, t.op == "delete" && t.left && t.kind == "missing" && t.path == "../b" && t.links == 0)`, "yes"},
		{`facts.targets.all(t, t.place == "workspace")`, "no"},
		{`facts.targets[5].op == "read"`, "fails"},
		{`facts.hosts == ["https://api.example.org:443"] && facts.recipients[0] == "slack:default:c1" && facts.outbound == ["hello"]`, "yes"},
		{`facts.urls.exists(u, hostIn(u, ["*.example.org"]))`, "yes"},
		{`caller.agent == "main" && caller.owner && caller.depth == 0 && caller.context == "main" && caller.channel == "slack"`, "yes"},
		{`caller.surface == "mcp" && caller.host == "gateway" && caller.workdir == "/ws/src" && caller.workspace == "/ws"`, "yes"},
		{`caller.session.startsWith("agent:main:") && !caller.sandboxed && caller.account + caller.group + caller.sender + caller.provider + caller.model == ""`, "yes"},
		{`pathUnder(facts.paths[1], "/srv")`, "yes"},
		{`pathUnder(params.path, "/ws")`, "fails"},
		{`glob(facts.command, "git *")`, "yes"},
		{`facts.command.matches("^git +(push|pull)$")`, "yes"},
		{`hostIn(params.path, ["a"])`, "yes"},
		{`[1, 2].exists(facts, facts == 2)`, "yes"}, // a name of its own hides ours
	} {
		got := "no"
		switch yes, err := holds(t, compiled(t, c.text), r); {
		case err != nil:
			got = "fails"
		case yes:
			got = "yes"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestWrongExpressions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "the expression is blank"},
		{" \n", "the expression is blank"},
		{"\xff", "the expression is not UTF-8"},
		{`1 +`, "column 4 of the expression: mismatched input"},
		{`true &&` + "\n" + ` tru`, `line 2, column 2 of the expression: there is no "tru"`},
		{`fact.place == ""`, `there is no "fact.place"; variables are params, facts`},
		{`facts.colour == ""`, `facts has no "colour"; it has action, place`},
		{`caller.name.startsWith("x")`, `caller has no "name"; it has agent, owner`},
		{`facts == 1`, `there is no "facts"`},
		{`facts.targets.exists(t, t.colour == 1)`, "column 26 of the expression: undefined field 'colour'"},
		{`facts.paths == "x"`, "no matching overload"},
		{`params.path`, "the expression is of type dyn, a condition must be of type bool"},
		{`"true"`, "of type string"},
		{`params.path.matches(params.pattern)`, "column 27 of the expression: the pattern of matches must be written as a text"},
		{`matches(params.path, tool)`, "the pattern of matches must be written as a text"},
		{`matches(params.path, "(")`, "missing closing )"},
		{`params.path.matches("(a{1,900}){1,900}")`, "invalid repeat count"},
		{`params.path.matches("[a-z]{900}")`, "exceeds limit"},
		{`glob(params.path, params.pattern)`, "the pattern of glob must be written as a text"},
		{`pathUnder(params.path, "ws")`, `column 24 of the expression: "ws": the path is not absolute`},
		{`hostIn(params.url, params.hosts)`, "the hosts of hostIn must be written as a list of texts"},
		{`hostIn(params.url, ["a", tool])`, "the hosts of hostIn must be written as a list of texts"},
		{`hostIn(params.url, ["*example.org"])`, `"*example.org" is not a host`},
		{`hostIn(params.url, ["*.10.0.0.1"])`, "nothing is below an IP address"},
		{`hostIn(params.url, ["https://example.org/x"])`, "is not a host"},
		{`level == "tense"`, `level is never "tense"; it is one of "normal", "elevated", "lockdown"`},
		{`"Workspace" == facts.place`, `facts.place is never "Workspace"`},
		{`level in ["normal", "high"]`, `level is never "high"`},
		{`params.a.exists(a, params.b.exists(b, params.c.exists(c, a == b && b == c)))`, "nesting limit"},
		{`params.a.exists(a, params.b.exists(b, a == b))`, "units even on a small call"},
		{strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), "recursion"},
		{strings.Repeat("!", 8192) + "true", "exceeds limit"},
	} {
		_, err := Compile(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
}

// What is too large for the bounds of the estimate is metered: it stops, and nobody knows.
func TestALargeCallIsStopped(t *testing.T) {
	list := "[" + strings.Repeat(`"x",`, 100_000) + `"x"]`
	r := callOf(t, `{"a":`+list+`,"text":"`+strings.Repeat("x", 500_000)+`"}`, toolward.Facts{})
	call := Look(r, "", toolward.Normal)
	defer call.Release()
	if call.small {
		t.Fatal("it counts as small")
	}
	nested := compiled(t, `params.a.exists(x, params.text.contains("zz"))`)
	if yes, err := nested.Holds(call); yes || err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("%t, %v", yes, err)
	}
	plain := compiled(t, `params.text.matches("^x+$")`)
	if yes, err := plain.Holds(call); !yes || err != nil {
		t.Errorf("%t, %v", yes, err)
	}
	for range 10 {
		nested.Holds(call) // spends what there is
	}
	if _, err := plain.Holds(call); err == nil {
		t.Error("all conditions together are not bounded")
	}
}

func TestACallIsForgotten(t *testing.T) {
	c := compiled(t, `params.secret == "x" && facts.paths == [] && level == "normal"`)
	for _, secret := range []string{"x", "y"} {
		if yes, err := holds(t, c, callOf(t, `{"secret":"`+secret+`"}`, toolward.Facts{})); err != nil || yes != (secret == "x") {
			t.Errorf("%s: %t, %v", secret, yes, err)
		}
	}
}

func TestPathUnder(t *testing.T) {
	for _, c := range []struct {
		file, dir string
		want      bool
	}{
		{"/srv/a", "/srv/a", true},
		{"/srv/a/", "/srv/a", true},
		{"/srv/a/b", "/srv/a/", true},
		{"/srv/ab", "/srv/a", false},
		{"/srv", "/srv/a", false},
		{"/srv/a/../b", "/srv/a", false},
		{"/srv/./a//b", "/srv/a", true},
		{"/x", "/", true},
		{"/", "/", true},
		{"/srv/A", "/srv/a", false},
		{"/../srv/a", "/srv", true},
	} {
		if got, err := pathUnder(c.file, c.dir); err != nil || got != c.want {
			t.Errorf("pathUnder(%q, %q) = %t, %v", c.file, c.dir, got, err)
		}
	}
	for _, file := range []string{"", "a", "./a", "~/a", "C:\\a", "/a\x00", "/" + strings.Repeat("a", longestPath)} {
		if yes, err := pathUnder(file, "/"); yes || err == nil {
			t.Errorf("%.20q passes", file)
		}
	}
	if yes, err := pathUnder("/"+strings.Repeat("a", longestPath-1), "/"); !yes || err != nil {
		t.Error("the longest path", err)
	}
}

func TestHostIn(t *testing.T) {
	list, err := newHostList([]string{"example.org", "*.sub.example", "port.example:8443", "10.0.0.1", "[::1]:80", "Bücher.example", "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"example.org", "yes"},
		{"https://example.org", "yes"},
		{"http://EXAMPLE.org./x?y#z", "yes"},
		{"example.org:99", "yes"},
		{"https://user:pw@example.org/", "yes"},
		{"ws://example.org", "yes"},
		{"evil-example.org", "no"},
		{"example.org.evil.com", "no"},
		{"https://example.org@evil.com/", "no"},
		{"www.example.org", "no"},
		{"https://evil.com/example.org", "no"},
		{"https://evil.com?@example.org", "no"},
		{"https://evil.com#@example.org", "no"},
		{"sub.example", "no"},
		{"a.sub.example", "yes"},
		{"a.b.SUB.example.", "yes"},
		{"evilsub.example", "no"},
		{"https://x-sub.example", "no"},
		{"port.example:8443", "yes"},
		{"https://port.example:8443/", "yes"},
		{"https://port.example/", "no"},
		{"port.example", "no"},
		{"https://port.example:08443", "yes"},
		{"http://10.0.0.1:5/", "yes"},
		{"::ffff:10.0.0.1", "yes"},
		{"http://[::1]/", "yes"},
		{"[0:0::1]:80", "yes"},
		{"https://[::1]/", "no"},
		{"::1", "no"},
		{"https://xn--bcher-kva.example/", "yes"},
		{"https://BÜCHER.example/", "yes"},
		{"https://bu\u0308cher.example", "yes"},
		{"https://localhost", "yes"},
		{"https://example。org/", "yes"},
		{"ｅｘａｍｐｌｅ.org", "yes"},
		// What programs read in different ways says nothing.
		{"", "fails"},
		{"https://", "fails"},
		{"/x", "fails"},
		{"user@example.org", "fails"},
		{"example.org/x", "fails"},
		{"https:example.org", "fails"},
		{"https://evil.com\\@example.org/", "fails"},
		{"https://exa mple.org", "fails"},
		{"https://example.org\n", "fails"},
		{"https://example.org:0", "fails"},
		{"https://example.org:65536", "fails"},
		{"https://example.org:x", "fails"},
		{"https://ex%61mple.org", "fails"},
		{"https://127.1", "fails"},
		{"https://2130706433/", "fails"},
		{"https://0x7f.0.0.1", "fails"},
		{"https://0x7f000001", "fails"},
		{"https://010.0.0.1", "fails"},
		{"https://１２７.1", "fails"},
		{"https://[fe80::1%25eth0]/", "fails"},
		{"https://..", "fails"},
		{"https://a..example.org", "fails"},
		{"https://.example.org", "fails"},
		{"https://example.org/" + strings.Repeat("x", longestURL), "fails"},
	} {
		got := "no"
		switch yes, err := list.contains(c.text); {
		case err != nil:
			got = "fails"
		case yes:
			got = "yes"
		}
		if got != c.want {
			t.Errorf("%.60q: %s, want %s", c.text, got, c.want)
		}
	}
}
