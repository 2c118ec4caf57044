package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/builtin"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/doctor"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/light"
)

var update = flag.Bool("update", false, "write generated files anew")

// home is a state directory with what a gateway leaves in it, all of it closed.
func home(t testing.TB, source string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{config.FileName: source, "key": "x", "second.jsonc": "{}"} {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t testing.TB, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func options(t testing.TB, dir string) doctor.Options {
	t.Helper()
	tools, err := builtin.New(builtin.Config{}, builtin.Deps{Places: func(toolward.Caller) (*place.Classifier, error) { return nil, errors.New("not needed") }})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(filepath.Join(dir, config.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return doctor.Options{
		Home: dir, Config: loaded, Tools: tools.Tools(), Around: policy.Surroundings{ClientTools: bridge.ToolNames()}, Now: time.Now(),
		Status: func(context.Context) (doctor.Status, error) { return doctor.Status{}, nil },
	}
}

func examine(t testing.TB, o doctor.Options) *doctor.Report {
	t.Helper()
	report, err := doctor.Examine(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// found lists the findings but for the summary, as "severity id".
func found(r *doctor.Report) []string {
	out := []string{}
	for _, f := range r.Findings {
		if f.CheckID != "summary.attack_surface" {
			out = append(out, string(f.Severity)+" "+f.CheckID)
		}
	}
	return out
}

// situation is one thing that is wrong, and the findings that it must give.
type situation struct {
	name, source string
	spoil        func(t testing.TB, dir string)
	options      func(*doctor.Options)
	want         []string
	fixed        []string // ids that --fix mends
}

var situations = []situation{
	{name: "sound", want: []string{}},
	{
		name: "world-writable state", spoil: func(t testing.TB, dir string) { chmod(t, dir, 0o777) },
		want: []string{"critical fs.state_dir.perms_world_writable", "warn exec_approvals.corrupt"}, fixed: []string{"fs.state_dir.perms_world_writable"},
	},
	{
		name: "group-writable state", spoil: func(t testing.TB, dir string) { chmod(t, dir, 0o770) },
		want: []string{"warn exec_approvals.corrupt", "warn fs.state_dir.perms_group_writable"}, fixed: []string{"fs.state_dir.perms_group_writable"},
	},
	{
		name: "readable state", spoil: func(t testing.TB, dir string) { chmod(t, dir, 0o750) },
		want: []string{"warn fs.state_dir.perms_readable"}, fixed: []string{"fs.state_dir.perms_readable"},
	},
	{
		name: "replaceable state", spoil: func(t testing.TB, dir string) { chmod(t, filepath.Dir(dir), 0o777) },
		want: []string{"critical fs.state_dir.perms_world_writable"},
	},
	{
		name: "link to the state",
		options: func(o *doctor.Options) {
			link := o.Home + "-link"
			if err := os.Symlink(o.Home, link); err != nil {
				panic(err)
			}
			o.Home = link
		},
		want: []string{"warn fs.state_dir.symlink"},
	},
	{
		name: "synced",
		options: func(o *doctor.Options) {
			o.Home = filepath.Join(filepath.Dir(o.Home), "Dropbox", "state")
			if err := os.MkdirAll(o.Home, 0o700); err != nil {
				panic(err)
			}
		},
		want: []string{"warn fs.synced_dir"},
	},
	{
		name: "sandboxes that show much",
		source: `{"agents": {"defaults": {"sandbox": {"mode": "all", "network": "bridge", "fs": {"allowProtected": true}, "user": "0:0", "allowAgentLoosening": true,
			"docker": {"dangerouslyAllowExternalBindSources": true, "dangerouslyAllowContainerNamespaceJoin": true}}}}}`,
		want: []string{
			"critical sandbox.dangerous_bind_mount", "critical sandbox.dangerous_network_mode",
			"warn config.insecure_or_dangerous_flags", "warn config.insecure_or_dangerous_flags", "warn sandbox.open_egress", "warn sandbox.root_user",
		},
	},
	{
		name: "sandboxes that nobody uses",
		source: `{"tools": {"exec": {"host": "sandbox"}}, "agents": {"defaults": {"sandbox": {"mode": "off", "limits": {"memory": "1g"}}},
			"list": [{"id": "a", "tools": {"exec": {"host": "sandbox"}}}]}}`,
		want: []string{
			"warn sandbox.docker_config_mode_off", "warn tools.exec.host_sandbox_no_sandbox_agents", "warn tools.exec.host_sandbox_no_sandbox_defaults",
		},
	},
	{
		name: "what is written for all counts for the one agent that is sandboxed",
		source: `{"agents": {"defaults": {"sandbox": {"mode": "off", "network": "bridge", "docker": {"memory": "1g", "dangerouslyAllowReservedContainerTargets": true}}},
			"list": [{"id": "a"}, {"id": "b", "sandbox": {"mode": "all"}}]}}`,
		want: []string{"critical sandbox.dangerous_bind_mount", "warn sandbox.open_egress"},
	},
	{
		name: "writable configuration", spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, config.FileName), 0o620) },
		want: []string{"critical fs.config.perms_writable"}, fixed: []string{"fs.config.perms_writable"},
	},
	{
		name: "readable configuration", spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, config.FileName), 0o644) },
		want: []string{"critical fs.config.perms_world_readable"}, fixed: []string{"fs.config.perms_world_readable"},
	},
	{
		name: "configuration of the group", spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, config.FileName), 0o640) },
		want: []string{"warn fs.config.perms_group_readable"}, fixed: []string{"fs.config.perms_group_readable"},
	},
	{
		name: "link to the configuration",
		spoil: func(t testing.TB, dir string) {
			other := filepath.Join(filepath.Dir(dir), "elsewhere.jsonc")
			write(t, other, "{}")
			chmod(t, other, 0o666)
			if err := errors.Join(os.Remove(filepath.Join(dir, config.FileName)), os.Symlink(other, filepath.Join(dir, config.FileName))); err != nil {
				t.Fatal(err)
			}
		},
		want: []string{"critical fs.config.perms_writable", "warn fs.config.symlink"}, fixed: []string{"fs.config.perms_writable"},
	},
	{
		name: "second configuration", source: `{"teg": {"shadow": "second.jsonc"}}`, spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, "second.jsonc"), 0o606) },
		want: []string{"critical fs.config_include.perms_writable"}, fixed: []string{"fs.config_include.perms_writable"},
	},
	{
		name: "second configuration for everybody", source: `{"teg": {"shadow": "second.jsonc"}}`, spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, "second.jsonc"), 0o604) },
		want: []string{"critical fs.config_include.perms_world_readable"}, fixed: []string{"fs.config_include.perms_world_readable"},
	},
	{
		name: "second configuration for the group", source: `{"teg": {"shadow": "second.jsonc"}}`, spoil: func(t testing.TB, dir string) { chmod(t, filepath.Join(dir, "second.jsonc"), 0o640) },
		want: []string{"warn fs.config_include.perms_group_readable"}, fixed: []string{"fs.config_include.perms_group_readable"},
	},
	{
		name: "key and database",
		spoil: func(t testing.TB, dir string) {
			write(t, filepath.Join(dir, "state.db-wal"), "")
			chmod(t, filepath.Join(dir, "state.db-wal"), 0o644)
			chmod(t, filepath.Join(dir, "key"), 0o640)
			chmod(t, filepath.Join(dir, "second.jsonc"), 0o602)
		},
		want:  []string{"critical fs.auth_profiles.perms_writable", "warn fs.auth_profiles.perms_readable", "warn fs.sessions_store.perms_readable"},
		fixed: []string{"fs.auth_profiles.perms_readable", "fs.auth_profiles.perms_writable", "fs.sessions_store.perms_readable"},
	},
	{name: "loopback by another name", source: `{"server": {"listen": "localhost:1"}}`, want: []string{}},
	{name: "IPv6 loopback", source: `{"server": {"listen": "[::1]:1"}}`, want: []string{}},
	{name: "outside", source: `{"server": {"listen": "0.0.0.0:1"}}`, want: []string{"warn gateway.control_ui.insecure_auth"}},
	{name: "all addresses", source: `{"server": {"listen": ":1"}}`, want: []string{"warn gateway.control_ui.insecure_auth"}},
	{
		name: "outside before the first passphrase", source: `{"server": {"listen": "192.0.2.1:1"}}`,
		options: func(o *doctor.Options) {
			o.Status = func(context.Context) (doctor.Status, error) { return doctor.Status{Setup: true}, nil }
		},
		want: []string{"critical gateway.bind_no_auth", "warn gateway.control_ui.insecure_auth", "warn teg.no_approver"},
	},
	{
		name: "re-opened here", source: `{"gateway": {"tools": {"allow": ["bash", "exec", "read"]}}}`, want: []string{"warn gateway.tools_invoke_http.dangerous_allow"},
	},
	{
		name: "re-opened for others", source: `{"server": {"listen": "0.0.0.0:1"}, "gateway": {"tools": {"allow": ["exec"]}}}`,
		want: []string{"critical gateway.tools_invoke_http.dangerous_allow", "warn gateway.control_ui.insecure_auth"},
	},
	{
		name: "trouble", options: func(o *doctor.Options) {
			o.Status = func(context.Context) (doctor.Status, error) {
				return doctor.Status{Notices: []string{"checkpoints of the record do not reach syslog local: refused"}}, nil
			}
		},
		want: []string{"critical teg.gateway_trouble"},
	},
	{
		name: "nobody there", options: func(o *doctor.Options) {
			o.Deep, o.Status = true, func(context.Context) (doctor.Status, error) { return doctor.Status{}, errors.New("refused") }
		},
		want: []string{"warn gateway.probe_failed"},
	},
	{
		name: "flags", source: `{"config": {"autoApply": true}, "teg": {"mcp": {"s": {"trustHints": true}}}, "tools": {"exec": {"security": "full"}}, "agents": {"list": [{"id": "a", "tools": {"exec": {"security": "full", "ask": "always"}}}]}}`,
		want: []string{"warn config.insecure_or_dangerous_flags", "warn config.insecure_or_dangerous_flags", "warn config.insecure_or_dangerous_flags"},
	},
	{
		name: "minimal", source: `{"tools": {"profile": "minimal"}, "agents": {"list": [{"id": "a", "tools": {"profile": "coding"}}, {"id": "b"}]}}`,
		want: []string{"warn tools.profile_minimal_overridden"},
	},
	{
		name: "program of a plug-in", want: []string{"critical plugins.code_safety.writable"}, fixed: []string{"plugins.code_safety.writable"},
		spoil: func(t testing.TB, dir string) {
			program := filepath.Join(filepath.Dir(dir), "guard")
			write(t, program, "#!/bin/sh\n")
			chmod(t, program, 0o777)
			write(t, filepath.Join(dir, config.FileName), fmt.Sprintf(`{"plugins": {"entries": {"guard": {"command": [%q]}}}}`, program))
		},
	},
	{name: "ignored list of a group", source: `{"channels": {"slack": {"groups": {"*": {"tools": {"allow": ["lobster"]}}}}}}`, want: []string{"critical policy.allowlist_stripped", "warn policy.unknown_entries"}},
	{name: "unknown entry", source: `{"tools": {"deny": ["wrte"]}}`, want: []string{"warn policy.unknown_entries"}},
	{name: "patch open", source: `{"tools": {"deny": ["write", "edit"], "exec": {"applyPatch": {"enabled": true}}}}`, want: []string{"warn policy.write_denied_patch_open"}},
	{name: "sandbox deny", source: `{"tools": {"sandbox": {"tools": {"allow": [], "deny": ["browser", "message"]}}}}`, want: []string{"warn policy.sandbox_deny_replaced"}},
	{name: "sandbox message", source: `{"tools": {"sandbox": {"tools": {"alsoAllow": ["message"]}}}}`, want: []string{"warn policy.sandbox_message_open"}},
	{name: "name of a sender", source: `{"channels": {"slack": {"groups": {"*": {"toolsBySender": {"name:Bob": {"allow": ["exec"]}}}}}}}`, want: []string{"warn policy.sender_by_mutable_name"}},
	{name: "model entry", source: `{"tools": {"byProvider": {"openai": {"deny": ["exec"]}, "openai/x": {"deny": ["cron"]}}}}`, want: []string{"warn policy.model_entry_hides_provider_deny"}},
	{name: "inherit", source: `{"tools": {"subagents": {"inherit": false}}}`, want: []string{"warn policy.inherit_off"}},
	{name: "bare key", source: `{"channels": {"slack": {"groups": {"*": {"toolsBySender": {"Bob": {"deny": ["exec"]}}}}}}}`, want: []string{"warn policy.untyped_sender"}},
	{name: "groups alike", source: `{"channels": {"slack": {"groups": {"C1": {}, "c1": {}}}}}`, want: []string{"warn policy.ambiguous_group"}},
	{name: "groups over HTTP", source: `{"gateway": {"tools": {"allow": ["group:fs"]}}}`, want: []string{"warn policy.http_not_exact"}},
	{name: "loosening pattern", source: `{"teg": {"tools": {"sessions_*": "safe"}}}`, want: []string{"warn teg.glob_cannot_loosen"}},
	{name: "loosening by name", source: `{"teg": {"tools": {"whatsapp_login": "safe"}}}`, want: []string{"warn teg.name_the_action"}},
	{
		name: "tool of a plug-in", options: func(o *doctor.Options) {
			o.Tools = append(o.Tools, &toolward.Tool{Name: "message", Plugin: "lobster", Schema: json.RawMessage(`{"type":"object"}`)})
		},
		want: []string{"warn policy.tool_refused"},
	},
	{name: "pointless rule", source: `{"teg": {"rules": [{"name": "r", "tool": "whatsapp_login", "when": "true", "then": "allow", "reason": "x"}]}}`, want: []string{"warn teg.rule_allows_nothing"}},
	{name: "shadow in the file", source: `{"teg": {"mode": "shadow"}}`, want: []string{"critical teg.shadow_mode"}},
	{
		name: "shadow in the gateway", options: func(o *doctor.Options) {
			o.Status = func(context.Context) (doctor.Status, error) { return doctor.Status{Shadow: true}, nil }
		},
		want: []string{"critical teg.shadow_mode"},
	},
	{name: "enabled", source: `{"teg": {"enable": ["nodes.camera_snap"]}}`, want: []string{"warn teg.blocked_enabled"}},
	{name: "loosened", source: `{"teg": {"tools": {"sessions_send": "safe"}}}`, want: []string{"warn teg.loosened"}},
	{
		name: "unguarded commands", source: `{"tools": {"exec": {"security": "full", "ask": "off"}}, "agents": {"list": [
			{"id": "a", "tools": {"exec": {"ask": "always"}}}, {"id": "b"}, {"id": "c", "tools": {"exec": {"security": "allowlist"}}}, {"id": "D", "tools": {"exec": {"security": "full"}}}]}}`,
		want: []string{"critical tools.exec.unguarded", "critical tools.exec.unguarded"},
	},
	{
		name: "commands that cannot be confined", options: confines(light.Check{Mode: light.None, Found: "no user namespaces", Fix: "a setting"}),
		want: []string{"warn tools.exec.light_confinement"},
	},
	{
		name: "commands by Landlock alone", options: confines(light.Check{Mode: light.Landlock, Found: "no user namespaces", Fix: "a setting"}),
		want: []string{"info tools.exec.light_confinement"},
	},
	{
		name: "commands that nobody confines", source: `{"tools": {"exec": {"lightConfinement": false}}}`, options: confines(light.Check{Mode: light.Namespaces}),
		want: []string{"warn tools.exec.light_confinement"},
	},
	{name: "commands that are confined", options: confines(light.Check{Mode: light.Namespaces}), want: []string{}},
	{
		name: "commands that the file guards", source: `{"tools": {"exec": {"security": "full", "ask": "off"}}}`,
		spoil: approvalsFile(`{"version": 1, "defaults": {"ask": "on-miss"}}`), want: []string{"warn config.insecure_or_dangerous_flags"},
	},
	{
		name: "senders with more rights", source: fmt.Sprintf(`{"tools": {"elevated": {"enabled": true, "allowFrom": {"telegram": ["*"], "slack": [%s"x"]}}}, "agents": {"defaults": {"elevatedDefault": "full"}}}`, strings.Repeat(`"x", `, 25)),
		want: []string{"critical tools.elevated.allowFrom.telegram.wildcard", "warn config.insecure_or_dangerous_flags", "warn tools.elevated.allowFrom.slack.large"},
	},
	{name: "more rights that are off", source: `{"tools": {"elevated": {"allowFrom": {"telegram": ["*"]}}}, "agents": {"defaults": {"elevatedDefault": "full"}}}`, want: []string{}},
	{
		name: "stream filters", source: `{"tools": {"exec": {"safeBins": ["python3"], "safeBinProfiles": {"sort": {}}}}}`,
		want: []string{"warn policy.unknown_entries", "warn tools.exec.safe_bins_interpreter_unprofiled"},
	},
	{
		name: "trusted directory", want: []string{"warn tools.exec.safe_bin_trusted_dirs_risky"},
		spoil: func(t testing.TB, dir string) {
			bin := filepath.Join(filepath.Dir(dir), "bin")
			if err := os.Mkdir(bin, 0o700); err != nil {
				t.Fatal(err)
			}
			chmod(t, bin, 0o777)
			write(t, filepath.Join(dir, config.FileName), fmt.Sprintf(`{"tools": {"exec": {"safeBinTrustedDirs": [%q]}}}`, bin))
		},
	},
	{
		name: "changed signatures", want: []string{"critical authority.damaged"},
		spoil: func(t testing.TB, dir string) { write(t, filepath.Join(dir, authority.FileName), `{"version": 1}`) },
	},
	{name: "corrupt entries", spoil: approvalsFile(`{"version": 2}`), want: []string{"warn exec_approvals.corrupt"}},
	{
		name: "wide entries", spoil: approvalsFile(`{"version": 1, "agents": {"*": {"allowlist": ["*", "/opt/tools/**", "/usr/bin/jq"]}}}`),
		want: []string{"critical exec_approvals.wildcard", "warn exec_approvals.unaccepted", "warn exec_approvals.wildcard"},
	},
	{
		name: "interpreters", spoil: approvalsFile(`{"version": 1, "agents": {"coder": {"allowlist": ["/usr/bin/python3.12", "/bin/bash", "/usr/bin/node*",
			{"pattern": "/usr/bin/make", "argv": ["/usr/bin/make", "test"]}]}}}`),
		want: []string{"warn exec_approvals.interpreter", "warn exec_approvals.interpreter", "warn exec_approvals.interpreter", "warn exec_approvals.unaccepted"},
	},
	{name: "loosened commands", source: `{"teg": {"tools": {"exec": "safe"}}}`, want: []string{"critical teg.loosened"}},
}

func approvalsFile(content string) func(testing.TB, string) {
	return func(t testing.TB, dir string) { write(t, filepath.Join(dir, allowlist.FileName), content) }
}

func (s situation) prepare(t testing.TB) doctor.Options {
	source := s.source
	if source == "" {
		source = "{}"
	}
	dir := home(t, source)
	if s.spoil != nil {
		s.spoil(t, dir)
	}
	o := options(t, dir)
	if s.options != nil {
		s.options(&o)
	}
	return o
}

func confines(check light.Check) func(*doctor.Options) {
	return func(o *doctor.Options) { o.Light = func() light.Check { return check } }
}

// TestSituations spoils an installation in one way at a time.
func TestSituations(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			o := s.prepare(t)
			report := examine(t, o)
			if diff := cmp.Diff(s.want, found(report)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range report.Findings {
				if f.Title == "" || f.Detail == "" || f.Remediation == "" && f.Severity != doctor.Info {
					t.Errorf("the finding says too little: %+v", f)
				}
			}
			if len(report.Fixed) > 0 {
				t.Errorf("without Fix %q were changed", report.Fixed)
			}
			o.Fix = true
			report = examine(t, o)
			var fixed []string
			for _, text := range report.Fixed {
				id, _, _ := strings.Cut(text, ":")
				fixed = append(fixed, id)
			}
			slices.Sort(fixed)
			if diff := cmp.Diff(s.fixed, fixed); diff != "" {
				t.Errorf("fixed (-want +got):\n%s", diff)
			}
			o.Fix = false
			if again := examine(t, o); len(again.Findings) != len(report.Findings) {
				t.Errorf("after mending: %q, said %q", found(again), found(report))
			}
		})
	}
}

// elsewhere are checks that tests of their own raise (TestDeep, TestRememberedConfigurationAgainstWhatIsSigned, TestRowsThatNobodySigned), and the one that is always there.
var elsewhere = []string{"authority.rows_altered", "config.remembered_altered", "teg.audit_gap", "teg.wide_grant", "summary.attack_surface"}

// channelOf finds the channel in the id of a check, which the catalog does not name.
var channelOf = regexp.MustCompile(`\.allowFrom\.\w+\.`)

// TestEveryCheckIsMade: what the catalog says is checked has been seen to find something.
func TestEveryCheckIsMade(t *testing.T) {
	raised := map[string]bool{}
	for _, s := range situations {
		for _, w := range s.want {
			_, id, _ := strings.Cut(w, " ")
			raised[channelOf.ReplaceAllString(id, ".allowFrom.<p>.")] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range doctor.Catalog() {
		switch {
		case seen[c.ID]:
			t.Errorf("%s stands twice in the catalogue", c.ID)
		case c.Since == "" && (c.Waits == "" || raised[c.ID]):
			t.Errorf("%s: is it checked or not?", c.ID)
		case c.Since != "" && (c.Title == "" || c.Subject == ""):
			t.Errorf("%s has no words", c.ID)
		case c.Since != "" && !raised[c.ID] && !slices.Contains(elsewhere, c.ID):
			t.Errorf("%s is said to be checked; nothing raises it", c.ID)
		}
		seen[c.ID] = true
	}
	for id := range raised {
		if !seen[id] {
			t.Errorf("%s is not in the catalogue", id)
		}
	}
	report := examine(t, options(t, home(t, "{}")))
	n := len(report.Checked)
	for _, a := range report.NotApplicable {
		n += len(a.CheckIDs)
	}
	if n != len(doctor.Catalog()) {
		t.Errorf("the report names %d checks of %d", n, len(doctor.Catalog()))
	}
}

// TestReport compares a whole report, as programs get it.
func TestReport(t *testing.T) {
	dir := home(t, `{"server": {"listen": "0.0.0.0:7411"}, "config": {"autoApply": true}, "tools": {"deny": ["wrte"]}, "teg": {"tools": {"exec": "safe"}}}`)
	chmod(t, dir, 0o755)
	o := options(t, dir)
	o.Fix = true
	raw, err := json.MarshalIndent(examine(t, o), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json", append(bytes.ReplaceAll(raw, []byte(dir), []byte("$HOME")), '\n'))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestDocs keeps the table of docs/security-checks.md true.
func TestDocs(t *testing.T) {
	const path, begin, end = "../docs/security-checks.md", "<!-- the catalogue -->\n", "<!-- end of the catalogue -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the catalogue", path)
	}
	var b strings.Builder
	b.WriteString("\n| check | severity | subject | found |\n|---|---|---|---|\n")
	for _, c := range doctor.Catalog() {
		what := c.Title
		switch {
		case c.Since == "":
			what = "— " + c.Waits
		case c.Deep:
			what += " (`--deep`)"
		}
		subject := c.Subject
		if c.Since == "" {
			subject = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.ID, c.Severity, subject, what)
	}
	b.WriteByte('\n')
	golden(t, path, []byte(before+begin+b.String()+end+after))
}

// TestNothingYet: before the first start there is nothing to find fault with.
func TestNothingYet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	o := options(t, dir)
	o.Deep = true
	if got := found(examine(t, o)); len(got) > 0 {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("looking made the state directory")
	}
}
