package importer_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/importer"
	"github.com/toolward/toolward/policy"
)

// TestRulesWithConditions carries rules of Claude Code over and makes calls under them.
func TestRulesWithConditions(t *testing.T) {
	const workspace = "/srv/shop"
	for _, test := range []struct {
		rule, tool string
		facts      toolward.Facts
		hit        bool
	}{
		{"Read(./secrets/**)", "read", file("secrets/a", "/srv/shop/secrets/a"), true},
		{"Read(./secrets/**)", "read", file("/srv/shop/secrets/a", "/mnt/disk/a"), true}, // a link leads away
		{"Read(./secrets/**)", "read", file("notes", "/srv/shop/secrets/a"), true},       // a link leads to it
		{"Read(./secrets/**)", "read", file("secrets", "/srv/shop/secrets"), true},
		{"Read(./secrets/**)", "read", file("other/secrets-of-tea.md", "/srv/shop/other/secrets-of-tea.md"), false},
		{"Read(secrets/keys)", "read", file("./secrets/keys", "/srv/shop/secrets/keys"), true},
		{"Read(/secrets/**)", "read", file("secrets/a", "/srv/shop/secrets/a"), true},
		{"Read(.env)", "read", file("deep/down/.env", "/srv/shop/deep/down/.env"), true},
		{"Read(.env)", "read", file(".env.example", "/srv/shop/.env.example"), false},
		{"Read(*.key)", "read", file("a.key", "/srv/shop/a.key"), true},
		{"Read(**/*.key)", "read", file("x/a.key", "/srv/shop/x/a.key"), true},
		{"Read(**/*.key)", "read", file("x/a.keys", "/srv/shop/x/a.keys"), false},
		{"Read(**/.env)", "read", file(".env", "/srv/shop/.env"), true},
		{"Read(**/.env)", "read", file("a/b/.env", "/srv/shop/a/b/.env"), true},
		{"Read(**/.env)", "read", file("a/b/env", "/srv/shop/a/b/env"), false},
		{"Read(./**/secrets/key.pem)", "read", file("a/secrets/key.pem", "/srv/shop/a/secrets/key.pem"), true},
		{"Read(**/secrets/**)", "read", file("a/secrets/b/c", "/srv/shop/a/secrets/b/c"), true},
		{"Read(**/secrets/**)", "read", file("secrets/b", "/srv/shop/secrets/b"), true},
		{"Read(//**/id_rsa)", "read", file("/home/me/.ssh/id_rsa", "/home/me/.ssh/id_rsa"), true},
		{"Read(src/*/x.ts)", "read", file("src/a/x.ts", "/srv/shop/src/a/x.ts"), true},
		{"Read(src/*/x.ts)", "read", file("src/a/y.ts", "/srv/shop/src/a/y.ts"), false},
		{"Read(~/mail/**)", "read", file("/home/me/mail/1", "/home/me/mail/1"), true},
		{"Read(//etc/shadow?)", "read", file("/etc/shadow-", "/etc/shadow-"), true},
		{"Read(//etc/ssl/[a-c]*)", "read", file("/etc/ssl/private", "/etc/ssl/private"), true}, // wider is stricter
		{"Read(//etc/ssl)", "read", file("/etc/sslx", "/etc/sslx"), false},
		{"Edit(docs/**)", "write", file("docs/a", "/srv/shop/docs/a"), true},
		{"Edit(docs/**)", "edit", file("docs/a", "/srv/shop/docs/a"), true},
		{"Edit(docs/**)", "read", file("docs/a", "/srv/shop/docs/a"), false},
		{"WebFetch(domain:evil.example)", "web_fetch", host("https://evil.example:443"), true},
		{"WebFetch(domain:evil.example)", "web_fetch", host("https://good.example:443"), false},
		{"WebFetch(domain:*.evil.example)", "web_fetch", host("https://a.evil.example:443"), true},
		{"Agent(Explore)", "sessions_spawn", toolward.Facts{TargetID: "Explore"}, true},
		{"Task(Explore)", "sessions_spawn", toolward.Facts{TargetID: "Plan"}, false},
	} {
		home := t.TempDir()
		settings, err := json.Marshal(map[string]any{"permissions": map[string]any{"deny": []string{test.rule}}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(home, "settings.json")
		writeFile(t, path, string(settings))
		plan, err := importer.Read(importer.ClaudeCode, "", importer.Where{Home: "/home/me", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		merged, err := plan.Merge("toolward.jsonc", nil, gatewayTools(t), around)
		if err != nil || len(merged.Changes) == 0 {
			t.Fatalf("%s: nothing was carried over: %v, %v", test.rule, merged, err)
		}
		loaded, err := config.Parse("x", merged.Source)
		if err != nil {
			t.Fatal(err)
		}
		snapshot, _, err := policy.Compile(loaded.File.Policy(), gatewayTools(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"claude-code", "another"} {
			j := snapshot.Judge(&toolward.Request{
				Call:   toolward.Call{Tool: test.tool, Caller: toolward.Caller{Agent: agent, Owner: true, Workspace: workspace}, WorkDir: workspace, Host: toolward.HostGateway},
				Tool:   &toolward.Tool{Name: test.tool, Schema: json.RawMessage(`{"type":"object"}`)},
				Params: toolward.NewParams([]byte("{}"), map[string]any{}), Facts: test.facts,
			})
			if hit := test.hit && agent == "claude-code"; (j.Verdict == toolward.Deny) != hit {
				t.Errorf("%s on %s %+v of %s: %s; want a hit: %t\n%s", test.rule, test.tool, test.facts, agent, j.Verdict, hit, merged.Source)
			}
		}
	}
}

func file(written, real string) toolward.Facts {
	return toolward.Facts{Targets: []toolward.Target{{Path: written, Real: real, Op: toolward.OpRead, Zone: "outside", Kind: "file", Links: 1}}}
}

func host(address string) toolward.Facts {
	return toolward.Facts{Hosts: []string{address}, URLs: []string{address + "/"}}
}

// What is beside the directory that a call works in is not known beforehand: the rule is listed, and not made of another
// directory of that name.
func TestRulesAboutDirectoriesBesideAreListed(t *testing.T) {
	for _, rule := range []string{"Read(../secrets/**)", "Read(./../secrets)", "Edit(a/../../b)", "Read(..)"} {
		path := filepath.Join(t.TempDir(), "settings.json")
		writeFile(t, path, `{"permissions": {"deny": ["`+rule+`"]}}`)
		plan, err := importer.Read(importer.ClaudeCode, "", importer.Where{Home: "/home/me", Path: path})
		if err != nil {
			t.Fatal(err)
		}
		merged, err := plan.Merge("toolward.jsonc", nil, gatewayTools(t), around)
		if err != nil || len(merged.Changes) > 0 || len(merged.Losses) != 1 {
			t.Errorf("%s: %+v, %v", rule, merged, err)
		}
	}
}
