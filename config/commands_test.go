package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/policy"
)

// everyCommandSetting has every key about commands with a value that is not its default.
const everyCommandSetting = `{
	"agents": {
		"defaults": { "elevatedDefault": "ask" },
		"list": [
			{ "id": "Coder", "tools": {
				"exec": { "preset": "developer", "security": "full", "safeBins": [], "rules": [ { "prefix": ["terraform"], "decision": "prompt" } ] },
				"elevated": { "enabled": false, "allowFrom": {} },
			} },
			{ "id": "reader" },
		],
	},
	"tools": {
		"exec": {
			"host": "gateway", "security": "allowlist", "ask": "always", "preset": "strict",
			"rules": [
				{
					"prefix": ["git", ["push", "pull"]], "decision": "prompt", "justification": "others see it",
					"match": ["git push origin main", "cd x && git pull"], "notMatch": ["git status"],
				},
				{ "prefix": [["rm", "shred"]], "decision": "forbidden" },
			],
			"safeBins": ["wc", "tsort"],
			"safeBinProfiles": {
				"tsort": { "minPositional": 0, "maxPositional": 1, "allowedFlags": ["--version"], "allowedValueFlags": ["-x"], "deniedFlags": ["--help"] },
			},
			"safeBinTrustedDirs": ["/opt/tools"], "strictInlineEval": false,
			"shell": "/bin/sh", "pathPrepend": ["/opt/bin"],
		},
		"elevated": { "enabled": true, "allowFrom": { "telegram": ["id:42"] } },
	},
	"teg": { "preset": "workspace" },
}`

func TestEveryCommandSettingIsRead(t *testing.T) {
	loaded, err := Parse("f", []byte(everyCommandSetting), CheckPolicy(nil, policy.Surroundings{}))
	if err != nil {
		t.Fatal(err)
	}
	loose, yes, no := false, true, false
	want := command.Configuration{
		Gateway: command.Config{
			Host: command.HostGateway, Preset: command.Strict,
			Rules: []command.Rule{
				{
					Prefix: []command.Alternatives{{"git"}, {"push", "pull"}}, Decision: command.Prompt, Justification: "others see it",
					Match: []string{"git push origin main", "cd x && git pull"}, NotMatch: []string{"git status"},
				},
				{Prefix: []command.Alternatives{{"rm", "shred"}}, Decision: command.Forbidden},
			},
			SafeBins: []string{"wc", "tsort"},
			SafeBinProfiles: map[string]command.SafeBin{"tsort": {
				MaxPositional: 1, AllowedFlags: []string{"--version"}, AllowedValueFlags: []string{"-x"}, DeniedFlags: []string{"--help"},
			}},
			SafeBinTrustedDirs: []string{"/opt/tools"}, StrictInlineEval: &loose,
		},
		Agents: map[string]command.Config{
			"coder": {
				Preset: command.Developer, SafeBins: []string{},
				Rules: []command.Rule{{Prefix: []command.Alternatives{{"terraform"}}, Decision: command.Prompt}},
			},
			"reader": {},
		},
		Writes:   true,
		Elevated: command.ElevatedConfig{Enabled: &yes, AllowFrom: map[string][]string{"telegram": {"id:42"}}},
		AgentElevated: map[string]*command.ElevatedConfig{
			"coder": {Enabled: &no, AllowFrom: map[string][]string{}}, "reader": {},
		},
		ElevatedDefault: "ask",
	}
	if got := loaded.File.Commands(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	p := loaded.File.Policy()
	if p.Tools.Exec.Ask != "always" || p.Tools.Exec.Security != "allowlist" || p.Agents[0].Tools.Exec.Security != "full" {
		t.Errorf("the part of policy: %+v, %+v", p.Tools.Exec, p.Agents[0].Tools.Exec)
	}
	if b := loaded.File.Builtin(); b.Shell != "/bin/sh" || len(b.PathPrepend) != 1 || b.ReadLines == 0 {
		t.Errorf("the part of the tools: %+v", b)
	}
}

// What is shown of the settings is what was written: no key is lost or doubled on the way through the types.
func TestEveryCommandSettingIsShown(t *testing.T) {
	loaded, err := Parse("f", []byte(everyCommandSetting))
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := loaded.Show()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]any{}
	for _, l := range leaves {
		if l.Source == "file" {
			shown[l.Key] = l.Value
		}
	}
	for key, want := range map[string]string{
		"agents.defaults.elevatedDefault":                    `"ask"`,
		"agents.list[0].tools.exec.preset":                   `"developer"`,
		"agents.list[0].tools.exec.safeBins":                 `[]`,
		"agents.list[0].tools.exec.rules[0].prefix":          `["terraform"]`,
		"agents.list[0].tools.elevated.enabled":              `false`,
		"tools.exec.host":                                    `"gateway"`,
		"tools.exec.ask":                                     `"always"`,
		"tools.exec.rules[0].prefix":                         `["git",["push","pull"]]`,
		"tools.exec.rules[1].decision":                       `"forbidden"`,
		"tools.exec.safeBinProfiles.tsort.allowedValueFlags": `["-x"]`,
		"tools.exec.safeBinTrustedDirs":                      `["/opt/tools"]`,
		"tools.exec.strictInlineEval":                        `false`,
		"tools.exec.shell":                                   `"/bin/sh"`,
		"tools.exec.pathPrepend":                             `["/opt/bin"]`,
		"tools.elevated.allowFrom.telegram":                  `["id:42"]`,
	} {
		if got, err := json.Marshal(shown[key]); err != nil || string(got) != want {
			t.Errorf("%s is shown as %s, want %s", key, got, want)
		}
	}
}

func TestCommandsWithoutSettings(t *testing.T) {
	loaded, err := Parse("f", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.File.Commands()
	section := c.For("anybody")
	if section.Preset != command.Strict || c.Writes || c.ElevatedDefault != "off" || c.Elevated.Enabled != nil {
		t.Errorf("a bare gateway: %+v", c)
	}
	if gates := command.ElevatedGates(c.Elevated, nil, toolward.Caller{Owner: true}); len(gates) == 0 {
		t.Error("commands with more rights may be asked for without a setting")
	}
}

// Editors accept what the program accepts, and refuse what it refuses.
func TestSchemaOfCommandSettings(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	every, err := ParseText([]byte(everyCommandSetting))
	if err != nil {
		t.Fatal(err)
	}
	every.Standardize()
	for text, want := range map[string]bool{
		string(every.Pack()):                                                                   true,
		`{"tools": {"exec": {"preset": "lax"}}}`:                                               false,
		`{"tools": {"exec": {"host": "node"}}}`:                                                false,
		`{"tools": {"exec": {"rules": [{"prefix": ["a"], "decision": "maybe"}]}}}`:             false,
		`{"tools": {"exec": {"rules": [{"prefix": [["a", "b"], "c"], "decision": "allow"}]}}}`: true,
		`{"tools": {"exec": {"rules": [{"prefix": [3], "decision": "allow"}]}}}`:               false,
		`{"tools": {"exec": {"safeBinProfiles": {"x": {"flags": []}}}}}`:                       false,
		`{"agents": {"defaults": {"elevatedDefault": "never"}}}`:                               false,
		`{"agents": {"list": [{"id": "a", "tools": {"exec": {"preset": "developer"}}}]}}`:      true,
		`{"agents": {"list": [{"id": "a", "tools": {"exec": {"ask": "sometimes"}}}]}}`:         false,
		`{"tools": {"elevated": {"enabled": true, "allowFrom": {"telegram": ["*"]}}}}`:         true,
		`{"tools": {"elevated": {"allowFrom": ["*"]}}}`:                                        false,
		`{"tools": {"exec": {"pathPrepend": ["/opt/bin"], "shell": "/bin/bash"}}}`:             true,
		`{"limits": {"tools": {"shell": "/bin/bash"}}}`:                                        false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		_, parseErr := Parse("f", []byte(text), CheckPolicy(nil, policy.Surroundings{}))
		if got := schema.Validate(value) == nil; got != want || (parseErr == nil) != want {
			t.Errorf("%s: schema %v, program %v, want %v", text, got, parseErr, want)
		}
	}
}
