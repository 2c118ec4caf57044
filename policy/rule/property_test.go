package rule

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"pgregory.net/rapid"
)

// Words that conditions and calls share, so that conditions hold now and then.
var (
	someWords = []string{"", "a", "b", "/ws", "/ws/a", "/ws/a/../b", "/srv/x", "x.example", "https://a.x.example/", "https://x.example:8443/p", "http://y", "send", "normal", "slack:default:c1"}
	someNames = []string{"path", "url", "n", "list", "nothing"}
)

// anyTerm draws a truth about a call; element is the name of the element of a list, if there is one around.
func anyTerm(t *rapid.T, element string) string {
	word := fmt.Sprintf("%q", rapid.SampledFrom(someWords).Draw(t, "word"))
	dir := fmt.Sprintf("%q", rapid.SampledFrom([]string{"/", "/ws", "/ws/a/", "/ws/b", "/srv"}).Draw(t, "dir"))
	hosts := rapid.SampledFrom([]string{`["x.example"]`, `["*.x.example"]`, `["x.example:8443", "y"]`, `["*.example"]`}).Draw(t, "hosts")
	texts := []string{"facts.action", "level", "facts.command", "caller.agent", "params." + rapid.SampledFrom(someNames).Draw(t, "name")}
	if element != "" {
		texts = append(texts, element, element, element)
	}
	value := rapid.SampledFrom(texts).Draw(t, "value")
	if value == "level" {
		word = `"normal"`
	}
	list := rapid.SampledFrom([]string{"facts.paths", "facts.urls", "facts.recipients"}).Draw(t, "list")
	kinds := []string{
		value + " == " + word, word + " == " + value, value + ` in [` + word + `, "normal"]`, word + " in " + list,
		"pathUnder(" + value + ", " + dir + ")", "hostIn(" + value + ", " + hosts + ")",
		"params.n > 3", "facts.mutates", "has(params.nothing)", "!(" + value + " == " + word + ")",
		value + `.startsWith("/ws")`, value + `.startsWith("https://")`, "matches(" + value + `, "^/ws/[a-z]")`, value + `.matches("^(?i)HTTPS")`,
		"size(" + list + ") > 0", "glob(" + value + `, "/ws*")`,
	}
	if element == "" {
		inner := anyTerm(t, "x")
		kinds = append(kinds, list+".exists(x, "+inner+")", list+".exists(x, "+inner+")", list+".all(x, "+inner+")",
			`facts.targets.exists(t, t.op == "write" && pathUnder(t.real, `+dir+"))")
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")
}

func anyExpression() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := anyTerm(t, "")
		for range rapid.IntRange(0, 3).Draw(t, "terms") {
			text = "(" + text + ")" + rapid.SampledFrom([]string{" && ", " || "}).Draw(t, "operator") + "(" + anyTerm(t, "") + ")"
		}
		return text
	})
}

func anyCall() *rapid.Generator[*toolward.Request] {
	return rapid.Custom(func(t *rapid.T) *toolward.Request {
		word := rapid.SampledFrom(someWords)
		words := rapid.SliceOfN(word, 0, 3)
		params := map[string]any{}
		for _, name := range someNames[:4] {
			switch rapid.IntRange(0, 4).Draw(t, name) {
			case 0:
			case 1:
				params[name] = json.Number(rapid.SampledFrom([]string{"1", "4", "2.5", "-0"}).Draw(t, "number"))
			case 2:
				params[name] = []any{word.Draw(t, "item"), nil}
			default:
				params[name] = word.Draw(t, "text")
			}
		}
		facts := toolward.Facts{
			Action: word.Draw(t, "action"), Command: word.Draw(t, "command"), Mutates: rapid.Bool().Draw(t, "mutates"),
			URLs: words.Draw(t, "urls"), Recipients: words.Draw(t, "recipients"),
		}
		for _, real := range words.Draw(t, "paths") {
			facts.Targets = append(facts.Targets, toolward.Target{Path: real, Real: real, Op: "write", Zone: "workspace"})
		}
		encoded, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		return &toolward.Request{
			Call: toolward.Call{Caller: toolward.Caller{Agent: word.Draw(t, "agent")}}, Tool: &toolward.Tool{Name: "write"},
			Params: toolward.NewParams(encoded, params), Facts: facts,
		}
	})
}

// TestTheIndexChangesNothing: looking conditions up finds the one that trying each in turn finds.
func TestTheIndexChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var conditions []*Condition
		var texts []string
		for range rapid.IntRange(1, 6).Draw(t, "conditions") {
			text := anyExpression().Draw(t, "expression")
			c, err := Compile(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			conditions, texts = append(conditions, c), append(texts, text)
		}
		r, failing := anyCall().Draw(t, "call"), rapid.Bool().Draw(t, "failing counts")
		call := Look(r, r.Facts.Action, toolward.Normal)
		defer call.Release()
		want := -1
		for i, c := range conditions {
			if yes, err := c.Holds(call); err == nil && yes || err != nil && failing {
				want = i
				break
			}
		}
		if got, _ := NewIndex(conditions).First(call, failing); got != want {
			t.Fatalf("found %d, in turn %d of\n%s", got, want, strings.Join(texts, "\n"))
		}
	})
}

// TestTheEstimateIsABound: what was computed when a condition was compiled bounds what it costs for a small call, so
// that it needs no meter there.
func TestTheEstimateIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyExpression().Draw(t, "expression")
		checked, issues := language().Compile(text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		estimate, err := language().EstimateCost(checked, sizes{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := plan(checked)
		if err != nil {
			t.Fatal(err)
		}
		r := anyCall().Draw(t, "call")
		call := Look(r, r.Facts.Action, toolward.Normal)
		defer call.Release()
		if !call.small {
			t.Fatal("the call is not small")
		}
		call.small = false
		c.Holds(call) // the cost counts
		if call.spent > estimate.Max {
			t.Fatalf("%s: cost %d, at most %d were expected", text, call.spent, estimate.Max)
		}
	})
}

// FuzzCompile: no text makes the compiler panic or think for long, and what it accepts can be evaluated.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`true`, `params.path == "a"`, `facts.paths.exists(p, pathUnder(p, "/etc"))`, `hostIn(params.url, ["*.example.org"])`, `params.a.all(x, x.matches("^(a+)+$"))`,
		`[1,2,3].map(x, x * 2).filter(y, y > 2) == [4, 6]`, `level == "normal" ? true : facts.elevated`, `((((((((((true))))))))))`, `"a" + "b" == "ab"`, `{"a": 1}.a == 1`,
		`Target{path: "x"}.path == "x"`, `duration("1h") > duration("1m")`, `timestamp("2026-01-01T00:00:00Z").getFullYear() == 2026`, `params.?a.orValue(1) == 1`, `!!!!!!!!true`, "\"\\ud800\" == ''",
	} {
		f.Add(seed, `{"path":"a","url":"https://a.example.org","a":["aaaa"]}`)
	}
	f.Fuzz(func(t *testing.T, text, params string) {
		start := time.Now()
		c, err := Compile(text)
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("%d bytes take %v", len(text), took)
		}
		var object map[string]any
		decoder := json.NewDecoder(strings.NewReader(params))
		decoder.UseNumber()
		if err != nil || decoder.Decode(&object) != nil || len(params) > 1<<16 {
			return
		}
		r := &toolward.Request{Tool: &toolward.Tool{Name: "write"}, Params: toolward.NewParams([]byte(params), object), Facts: someFacts}
		start = time.Now()
		call := Look(r, "", toolward.Normal)
		defer call.Release()
		want, failure := c.Holds(call)
		at, _ := NewIndex([]*Condition{c}).First(call, true)
		if (at == 0) != (want || failure != nil) {
			t.Errorf("%q holds: %t, %v; looked up: %d", text, want, failure, at)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Fatalf("evaluation of %q takes %v", text, took)
		}
	})
}

// FuzzAddress: an address that is read has a host of one form, the one that Go's own reader finds, and reading it
// again gives the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://example.org:8443/a?b#c", "http://a-b.example", "https://user@x/", "::1", "http://[::1]:80", "https://xn--bcher-kva.example", "https://a.example:0443", "http://0x7f.1", "https://example.org\\@x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := addressOf(text)
		if err != nil {
			return
		}
		if again, err := canonicalHost(a.host); err != nil || again != a.host {
			t.Errorf("%q: %q is read as %q, %v", text, a.host, again, err)
		}
		if !strings.Contains(text, "://") {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q passes: %v", text, err)
		}
		if host, err := canonicalHost(u.Hostname()); err != nil || host != a.host {
			t.Errorf("%q: host %q, but %q, %v", text, a.host, host, err)
		}
		if port := u.Port(); port != "" && strings.TrimLeft(port, "0") != a.port {
			t.Errorf("%q: port %q, but %q", text, a.port, port)
		}
	})
}
