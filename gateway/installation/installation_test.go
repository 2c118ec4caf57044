package installation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/bridge"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway/installation"
)

// machine is the home of a person, with a hook program and Toolward's own home in it.
func machine(t *testing.T) (home, state string, loaded *config.Loaded) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	if err := os.WriteFile(filepath.Join(home, "toolward-hook"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	state = filepath.Join(home, ".toolward")
	loaded, err := config.Load(filepath.Join(state, config.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return home, state, loaded
}

func TestEveryClientIsInstalledWhereItLooks(t *testing.T) {
	for _, client := range installation.Clients() {
		t.Run(client, func(t *testing.T) {
			home, state, loaded := machine(t)
			project := filepath.Join(home, "project")
			for _, target := range []installation.Target{{}, {Project: project}} {
				target.Client, target.Hook = client, filepath.Join(home, "toolward-hook")
				plan, err := installation.PlanInstall(t.Context(), state, loaded, target)
				if err != nil {
					t.Fatal(err)
				}
				inProject := strings.HasPrefix(plan.Path, project+"/")
				if !strings.HasPrefix(plan.Path, home+"/") || inProject != (target.Project != "") {
					t.Errorf("%+v is installed in %s", target, plan.Path)
				}
				if err := plan.Apply(); err != nil {
					t.Fatal(err)
				}
				if plan, err = installation.PlanUninstall(state, loaded, target); err != nil || !plan.Changed() {
					t.Errorf("%+v: uninstalling finds nothing, or %v", target, err)
				}
			}
		})
	}
}

// A client that was told to keep its settings elsewhere would not see a hook in the usual place.
func TestTheHookGoesWhereTheClientWasMoved(t *testing.T) {
	home, state, loaded := machine(t)
	elsewhere := filepath.Join(home, "elsewhere")
	t.Setenv("CLAUDE_CONFIG_DIR", elsewhere)
	plan, err := installation.PlanInstall(t.Context(), state, loaded, installation.Target{Client: bridge.ClaudeCode, Hook: filepath.Join(home, "toolward-hook")})
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(plan.Path) != elsewhere {
		t.Errorf("it goes to %s", plan.Path)
	}
}

func TestEveryClientIsExamined(t *testing.T) {
	_, state, loaded := machine(t)
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	checks, err := installation.Examine(t.Context(), installation.Examined{
		State: state, Loaded: loaded, Unsound: errors.New("unsound"),
		Ask: func(context.Context) (installation.Running, error) {
			return installation.Running{}, errors.New("nobody")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bridge.State{}
	for _, check := range checks {
		got[check.Name] = check.State
	}
	want := map[string]bridge.State{"home": bridge.Failed, "configuration": bridge.Failed, "gateway": bridge.Failed, "sandbox": bridge.Skipped}
	for _, client := range installation.Clients() {
		want[client+" hook"] = bridge.Skipped
	}
	for name, state := range want {
		if got[name] != state {
			t.Errorf("%s is %q, want %q", name, got[name], state)
		}
	}
}
