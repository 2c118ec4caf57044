package place

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWorkspacesThatAreRefused(t *testing.T) {
	home := t.TempDir()
	state, linked := filepath.Join(home, ".toolward"), filepath.Join(home, "linked-state")
	onPath := filepath.Join(home, "tools")
	t.Setenv("PATH", onPath+":"+home+":relative")
	for _, dir := range []string{
		filepath.Join(state, "inside"), filepath.Join(home, "project"), onPath, filepath.Join(home, ".local", "bin", "x"), filepath.Join(home, ".config", "autostart"),
		filepath.Join(home, ".ssh", "keys"), filepath.Join(home, ".dotfiles", "vim"), filepath.Join(home, "go", "src", "shop"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{linked: state, filepath.Join(home, "to-project"): filepath.Join(home, "project")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, stateDir := range []string{state, linked} {
		layout := Layout{Home: home, StateDir: stateDir}
		for name, test := range map[string]struct {
			dir     string
			allowed bool
		}{
			"a project":                        {filepath.Join(home, "project"), true},
			"a link to a project":              {filepath.Join(home, "to-project"), true},
			"the home":                         {home, false},
			"above the home":                   {filepath.Dir(home), false},
			"the state":                        {state, false},
			"a link to the state":              {linked, false},
			"inside the state":                 {filepath.Join(state, "inside"), false},
			"inside the state, through a link": {filepath.Join(linked, "inside"), false},
			"of programs":                      {filepath.Join(home, ".local", "bin"), false},
			"below one of programs":            {filepath.Join(home, ".local", "bin", "x"), false},
			"above one of programs, dotted":    {filepath.Join(home, ".local"), false},
			"above one of programs":            {filepath.Join(home, "go"), true},
			"on the search path":               {onPath, false},
			"what starts at a sign-in":         {filepath.Join(home, ".config", "autostart"), false},
			"all settings":                     {filepath.Join(home, ".config"), false},
			"keys":                             {filepath.Join(home, ".ssh", "keys"), false},
			"below a dotted one":               {filepath.Join(home, ".dotfiles", "vim"), true},
			"/etc/profile.d":                   {"/etc/profile.d", false},
			"relative":                         {"project", false},
			"absent":                           {filepath.Join(home, "absent"), false},
			"a file":                           {file, false},
		} {
			t.Run(filepath.Base(stateDir)+"/"+name, func(t *testing.T) {
				real, err := layout.CheckWorkspace(test.dir)
				if (err == nil) != test.allowed {
					t.Errorf("%q, %v", real, err)
				}
			})
		}
	}
}

// Where the home is not known, no directory is known not to hold it; where names fold, one directory has many.
func TestWorkspacesInDoubtAreRefused(t *testing.T) {
	base := t.TempDir()
	home, project := filepath.Join(base, "Home"), filepath.Join(base, "Home", "project")
	for _, dir := range []string{project, filepath.Join(base, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(home, ".toolward")
	for name, test := range map[string]struct {
		layout  Layout
		dir     string
		allowed bool
	}{
		"all is known":        {Layout{Home: home, StateDir: state}, project, true},
		"a relative home":     {Layout{Home: "Home", StateDir: state}, project, false},
		"a relative state":    {Layout{Home: home, StateDir: "state"}, project, false},
		"no home":             {Layout{StateDir: state}, project, false},
		"no state":            {Layout{Home: home}, project, false},
		"names fold":          {Layout{Home: home, StateDir: state, FoldCase: true}, filepath.Join(base, "home"), false},
		"names fold, project": {Layout{Home: home, StateDir: state, FoldCase: true}, project, true},
	} {
		if _, err := test.layout.CheckWorkspace(test.dir); (err == nil) != test.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}
