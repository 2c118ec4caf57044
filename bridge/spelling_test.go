package bridge_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// Clients trim paths, put them into Unicode's composed form and take ".." away before they follow links; the kernel does
// none of it. A path that means one file here and another one there must not be judged by either.
func TestPathsThatClientsReadDifferently(t *testing.T) {
	r := newRig(t, toolward.Allow)
	deep := filepath.Join(r.project, "a", "b", "c")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"deep": deep, "near": filepath.Join(r.project, "a")} {
		if err := os.Symlink(to, filepath.Join(r.project, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, path string
		refused    bool
	}{
		{"plain", "{{project}}/a.txt", false},
		{"dots without a link", "a/../b.txt", false},
		{"dots above the project", "../other/x.txt", false},
		{"dots that mean the same either way", "near/../b.txt", false},
		{"home", "~/.ssh/config", false},
		{"composed", "caf\u00e9.txt", false},
		{"a space in front of home", " ~/.ssh/config", true},
		{"a space in front of a root", " {{home}}/.ssh/config", true},
		{"a space behind", "CLAUDE.md ", true},
		{"a no-break space", "\u00a0~/.ssh/config", true},
		{"a byte order mark", "\ufeff~/.ssh/config", true},
		{"decomposed", "cafe\u0301.txt", true},
		{"a sign that becomes a letter", "\u212aeys", true},
		{"dots behind a link", "deep/../../.ssh/config", true},
		{"dots behind a link from the root", "{{project}}/deep/../../.ssh/config", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := r.decided("Read", `{"file_path":`+jsonText(test.path)+`}`)
			if refused := d.Code == toolward.CodeInvalidArgs; refused != test.refused {
				t.Errorf("code %q, targets %+v", d.Code, d.Facts.Targets)
			}
		})
	}
}

// A pattern may lead out of the directory that it is said to be about.
func TestWhereAPatternLooks(t *testing.T) {
	r := newRig(t, toolward.Allow)
	if err := os.MkdirAll(filepath.Join(r.home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	for pattern, places := range map[string]string{
		"**/*.go":            "workspace",
		"src/{a,b}/*.go":     "workspace",
		"{{home}}/.ssh/*":    "workspace secret",
		"~/.ssh/*":           "workspace secret",
		"../home/.ssh/*":     "workspace secret",
		"src/../../home/.s*": "workspace outside",
	} {
		t.Run(pattern, func(t *testing.T) {
			var got []string
			for _, target := range r.decided("Glob", `{"pattern":`+jsonText(pattern)+`}`).Facts.Targets {
				got = append(got, string(target.Zone))
			}
			if strings.Join(got, " ") != places {
				t.Errorf("looks at %q, want %q", got, places)
			}
		})
	}
}

// A workspace that holds the home directory would make every program and start-up file in it the agent's own.
func TestAWorkspaceThatHoldsTheHome(t *testing.T) {
	for name, project := range map[string]func(r *rig) string{
		"home":         func(r *rig) string { return r.home },
		"above home":   func(r *rig) string { return filepath.Dir(r.home) },
		"root":         func(*rig) string { return "/" },
		"a link to it": func(r *rig) string { return filepath.Join(r.project, "link") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, toolward.Allow)
			if err := os.Symlink(r.home, filepath.Join(r.project, "link")); err != nil {
				t.Fatal(err)
			}
			r.headers["Toolward-Project-Dir"] = project(r)
			d := r.decided("Write", `{"file_path":"{{home}}/.local/bin/ls","content":"x"}`)
			if len(d.Facts.Targets) != 1 || d.Facts.Targets[0].Zone != "outside" {
				t.Errorf("targets %+v", d.Facts.Targets)
			}
			if d.Call.Caller.Workspace == "" {
				t.Error("no workspace: what people grant here would hold everywhere")
			}
		})
	}
}
