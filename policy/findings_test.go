package policy

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/redact"
)

// codesOf are the findings of a judgment as "code effect".
func codesOf(j toolward.Judgment) string {
	var codes []string
	for _, f := range j.Findings {
		codes = append(codes, f.Code+" "+f.Effect.String())
	}
	return strings.Join(codes, ", ")
}

// text64 has 64 characters of the alphabet and far more than 3.5 bits for each.
const text64 = "QWxhZGRpbjpvcGVuIHNlc2FtZSBhbmQgc29tZSBtb3JlIHRleHQgdGhhdCBpcyB0"

// letters repeats the first n letters of the alphabet to a length: log2(n) bits for each where n divides the length.
func letters(n, length int) string {
	return strings.Repeat("abcdefghijklmnop"[:n], length/n+1)[:length]
}

func TestURLBoundaries(t *testing.T) {
	const site = "https://example.org"
	hash := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		name, url, want string
	}{
		{"2,000 characters of path and query", site + "/" + strings.Repeat("a/", 499) + "b?" + strings.Repeat("x&", 500), ""},
		{"2,001 characters of path and query", site + "/" + strings.Repeat("a/", 499) + "bc?" + strings.Repeat("x&", 500) + "x", "url_exfil"},
		{"2,000 characters that are more bytes", site + "/" + strings.Repeat("a", 1999), ""},
		{"2,001 characters of path", site + "/" + strings.Repeat("a", 2000), "url_exfil"},
		{"a fragment is not sent", site + "/#" + strings.Repeat("a", 3000), ""},
		{"63 characters", site + "/" + text64[:63], ""},
		{"64 characters", site + "/" + text64, "url_exfil"},
		{"64 characters, escaped", site + "/" + strings.ReplaceAll(text64, "Q", "%51"), "url_exfil"},
		{"64 characters in a name", site + "/?" + text64 + "=1", "url_exfil"},
		{"63 characters in a name", site + "/?" + text64[:63] + "=1", ""},
		{"64 characters in a value", site + "/?q=" + text64, "url_exfil"},
		{"63 characters in a value", site + "/?q=" + text64[:63], ""},
		{"64 characters of ordinary words", site + "/" + strings.Repeat("and-so-on-", 7), ""},
		{"3.5 bits and above", site + "/" + letters(12, 72), "url_exfil"},
		{"3.46 bits", site + "/" + letters(11, 66), ""},
		{"4 bits", site + "/" + letters(16, 64), "url_exfil"},
		{"pure hex of 64", site + "/" + hash, ""},
		{"pure hex of 63", site + "/" + hash[:63], ""},
		{"pure hex of 65", site + "/" + hash + "0", "url_exfil"},
		{"pure hex of 128", site + "/" + hash + hash, ""},
		{"pure hex of 64 in a value", site + "/?q=" + hash, "url_exfil"},
		{"host label of 40", "https://" + strings.Repeat("a", 40) + ".example.org/", ""},
		{"host label of 41", "https://" + strings.Repeat("a", 41) + ".example.org/", "url_exfil"},
		{"IPv6 is no label", "https://[2001:0db8:0000:0000:0000:0000:0000:0001]/", ""},
		{"credentials", "https://u@example.org/", "url_userinfo"},
		{"empty credentials", "https://@example.org/", "url_userinfo"},
		{"another scheme", "ftp://example.org/", "url_scheme"},
		{"no host", "https:///x", "url_invalid"},
		{"no scheme", "example.org/x", "url_invalid"},
		{"blank", "", "url_invalid"},
		{"NUL", "https://example.org/\x00", "url_invalid"},
	} {
		if got := strings.Join(URLFindings(c.url), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A secret that the gateway holds is found in whatever form it would leave, in whatever part of the call.
func TestSecretsLeaveInNoForm(t *testing.T) {
	const secret = "tw_9f?K/+held secret&7"
	s := compile(t, Config{Around: Surroundings{Secrets: redact.New(secret)}}, coreTools()...)
	single := ""
	for _, c := range []byte(secret) {
		if c%2 == 0 || strings.IndexByte(" &?/+", c) >= 0 {
			single += "%" + hex.EncodeToString([]byte{c})
			continue
		}
		single += string(c)
	}
	forms := map[string]string{
		"plain": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"base64 inside more": base64.StdEncoding.EncodeToString([]byte("x: " + secret + " and more")), "base64, escaped": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("ab" + secret))),
		"hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"query": url.QueryEscape(secret), "path": url.PathEscape(secret), "some characters escaped": single, "with broken escapes around": "%zz" + single + "%",
	}
	for name, form := range forms {
		for where, facts := range map[string]toolward.Facts{
			"body":    {Outbound: []string{"hello", "take " + form + " please"}},
			"command": {Command: "echo " + form},
			"URL":     {URLs: []string{"https://example.org/?q=" + form}},
		} {
			if where == "URL" && strings.ContainsAny(form, " ") {
				continue // refused as no URL
			}
			j := s.Judge(request(t, "web_fetch", json.RawMessage(`{}`), facts))
			if !strings.Contains(codesOf(j), "secret_value deny") || j.Verdict != toolward.Deny {
				t.Errorf("%s in a %s: %s", name, where, codesOf(j))
			}
		}
	}
	for _, harmless := range []string{"tw_9f", "held secret", secret[:len(secret)-1], "100% sure"} {
		if j := s.Judge(request(t, "web_search", json.RawMessage(`{}`), toolward.Facts{Outbound: []string{harmless}})); j.Verdict != toolward.Allow {
			t.Errorf("%q: %s", harmless, codesOf(j))
		}
	}
}

func TestInvisibleText(t *testing.T) {
	s := compile(t, Config{}, coreTools()...)
	for _, c := range []string{"\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\U000e0041", "\u00ad", "\x1b", "\x7f", "\u0085", "\u2028", "\u3164", "\ufe0f"} {
		for where, facts := range map[string]toolward.Facts{
			"command":   {Command: "ls a" + c + "b"},
			"URL":       {URLs: []string{"https://example.org/a" + c + "b"}},
			"recipient": {Recipients: []string{"slack:default:a" + c}},
			"path":      {Targets: []toolward.Target{{Path: "a" + c, Real: "/ws/a", Op: "write", Zone: "workspace", Kind: "file", Links: 1}}},
		} {
			if j := s.Judge(request(t, "message", json.RawMessage(`{"action":"send"}`), facts)); !strings.Contains(codesOf(j), "invisible_text ask") {
				t.Errorf("%+q in a %s: %s", c, where, codesOf(j))
			}
		}
	}
	for _, fine := range []string{"ls\n\tb", "é", "日本語", "e\u0301"} {
		if j := s.Judge(request(t, "exec", json.RawMessage(`{}`), toolward.Facts{Command: fine})); codesOf(j) != "" {
			t.Errorf("%+q: %s", fine, codesOf(j))
		}
	}
}

// knownRecipients is what a channel knows.
type knownRecipients struct{ known, granted []string }

func (k knownRecipients) Known(_ toolward.SessionKey, to string) bool {
	return slices.Contains(k.known, to)
}

func (k knownRecipients) Granted(_ *toolward.Call, to string) bool {
	return slices.Contains(k.granted, to)
}

func TestNewRecipients(t *testing.T) {
	around := Surroundings{Recipients: knownRecipients{known: []string{"slack:a:known"}, granted: []string{"slack:a:granted"}}}
	for _, c := range []struct {
		name   string
		around Surroundings
		action string
		facts  toolward.Facts
		want   string
	}{
		{"the present conversation", Surroundings{}, "send", toolward.Facts{Scope: "self", Recipients: []string{"slack:a:here"}}, ""},
		{"somebody, and nobody knows", Surroundings{}, "send", toolward.Facts{Recipients: []string{"slack:a:known"}}, "recipient_new ask"},
		{"used by an owner", around, "send", toolward.Facts{Recipients: []string{"slack:a:known"}}, ""},
		{"granted", around, "send", toolward.Facts{Recipients: []string{"slack:a:granted"}}, "recipient_new note"},
		{"new", around, "send", toolward.Facts{Recipients: []string{"slack:a:new"}}, "recipient_new ask"},
		{"one of two new", around, "broadcast", toolward.Facts{Recipients: []string{"slack:a:known", "slack:a:new"}}, "recipient_new ask"},
		{"looking", around, "read", toolward.Facts{Recipients: []string{"slack:a:new"}}, ""},
	} {
		s := compile(t, Config{Around: c.around}, coreTools()...)
		j := s.Judge(request(t, "message", json.RawMessage(`{"action":"`+c.action+`"}`), c.facts))
		if got := codesOf(j); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if asks := strings.Contains(c.want, "ask"); asks == j.GrantOK && c.action == "send" {
			t.Errorf("%s: a grant is enough: %t", c.name, j.GrantOK)
		}
	}
}

// guard refuses what contains a word.
type guard string

func (g guard) Refuses(u string) string {
	if strings.Contains(u, string(g)) {
		return "its own network"
	}
	return ""
}

func TestRefusedAddresses(t *testing.T) {
	s := compile(t, Config{Around: Surroundings{Addresses: guard("169.254.")}}, coreTools()...)
	for u, want := range map[string]string{"http://169.254.169.254/": "ssrf deny", "https://example.org/": ""} {
		if got := codesOf(s.Judge(request(t, "web_fetch", json.RawMessage(`{}`), toolward.Facts{URLs: []string{u}}))); got != want {
			t.Errorf("%s: %q, want %q", u, got, want)
		}
	}
}

func TestFindingsOfCommandAnalysis(t *testing.T) {
	full := visible.Tools{Exec: visible.Exec{Security: "full", Ask: "off"}}
	hidden := toolward.Finding{Code: "command_hidden", Effect: toolward.EffectAsk}
	dangerous := toolward.Finding{Code: "command_dangerous", Effect: toolward.EffectAsk}
	reaching := toolward.Finding{Code: "command_caution", Effect: toolward.EffectNote}
	env := toolward.Finding{Code: "env_dangerous", Effect: toolward.EffectDeny}
	covered := toolward.CommandAnalysis{Understood: true, Covered: true}
	for _, c := range []struct {
		name     string
		analysis toolward.CommandAnalysis
		finding  []toolward.Finding
		host     toolward.Host
		level    toolward.Level
		want     string
		verdict  toolward.Verdict
	}{
		{"understood", toolward.CommandAnalysis{Understood: true}, nil, toolward.HostGateway, toolward.Normal, "", toolward.Allow},
		{"not understood", toolward.CommandAnalysis{}, nil, toolward.HostGateway, toolward.Normal, "command_parse ask", toolward.Ask},
		{"not understood, on a node", toolward.CommandAnalysis{}, nil, "node:a", toolward.Normal, "command_parse ask", toolward.Ask},
		{"not understood, in the sandbox", toolward.CommandAnalysis{}, nil, toolward.HostSandbox, toolward.Normal, "command_parse note", toolward.Allow},
		{"not understood, in the sandbox, elevated", toolward.CommandAnalysis{}, nil, toolward.HostSandbox, elevated, "command_parse ask", toolward.Ask},
		{"hidden", covered, []toolward.Finding{hidden}, toolward.HostSandbox, toolward.Normal, "command_hidden ask", toolward.Ask},
		{"dangerous", covered, []toolward.Finding{dangerous}, toolward.HostGateway, toolward.Normal, "command_dangerous ask", toolward.Ask},
		{"reaching out", covered, []toolward.Finding{reaching}, toolward.HostGateway, toolward.Normal, "command_caution note", toolward.Allow},
		{"environment", covered, []toolward.Finding{env}, toolward.HostGateway, toolward.Normal, "env_dangerous deny", toolward.Deny},
	} {
		s := compile(t, Config{Tools: full}, coreTools()...)
		r := request(t, "exec", json.RawMessage(`{"command":"ls"}`), toolward.Facts{Command: "ls", Analysis: &c.analysis, Findings: c.finding})
		r.Call.Host, r.Level = c.host, c.level
		j := s.Judge(r)
		if got := codesOf(j); got != c.want || j.Verdict != c.verdict {
			t.Errorf("%s: %q, %s, want %q, %s", c.name, got, j.Verdict, c.want, c.verdict)
		}
		want := toolward.Warning
		switch c.name {
		case "dangerous":
			want = toolward.Critical
		case "understood", "environment":
			want = toolward.Info
		}
		if got := j.Class.Severity; got != want {
			t.Errorf("%s: severity %s, want %s", c.name, got, want)
		}
	}
}
