package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackageIsFoundByItsVersion(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("TOOLWARD_LIVE", "")
	where := filepath.Join(cache, "toolward-live", "thing", "node_modules", "@maker", "thing")
	if err := os.MkdirAll(where, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, manifest, fault string }{
		{"not there", "", "TOOLWARD_LIVE=all installs it"},
		{"the version", `{"version":"1.2.3"}`, ""},
		{"another version", `{"version":"1.2.4"}`, "@maker/thing@1.2.3 is not in"},
		{"broken", `{`, "package.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifest := filepath.Join(where, "package.json")
			if c.manifest == "" {
				os.Remove(manifest)
			} else if err := os.WriteFile(manifest, []byte(c.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Package("thing", "@maker/thing", "1.2.3").find()
			switch {
			case c.fault == "" && (err != nil || got != where):
				t.Errorf("got %q, %v; want %q", got, err, where)
			case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("got %q, %v; want an error with %q", got, err, c.fault)
			}
		})
	}
}

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	second := filepath.Join(dir, "second")
	if _, err := Program("first", "second").find(); err == nil || !strings.Contains(err.Error(), "first or second") {
		t.Errorf("got %v, want both names", err)
	}
	if err := os.WriteFile(second, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Program("first", "second").find(); err != nil || got != second {
		t.Errorf("got %q, %v; want %q", got, err, second)
	}
}
