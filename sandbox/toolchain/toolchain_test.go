package toolchain

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// made makes a file, and its directories, in a home.
func made(t *testing.T, parts ...string) string {
	t.Helper()
	name := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func newHome(t *testing.T) string {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return home
}

func (f *Found) of(tool string) (dirs []string) {
	for _, d := range f.Dirs {
		if d.Tool == tool {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

func TestToolchainsOfAHome(t *testing.T) {
	home := newHome(t)
	for _, name := range []string{
		".nvm/versions/node/v22/bin/node", ".pyenv/shims/python3", ".cargo/bin/cargo", ".cargo/credentials.toml", "sdk/go1.27/bin/go",
		".local/share/uv/python/3.13/bin/python", ".local/share/uv/credentials/x", "elsewhere/pnpm/pnpm", ".m2/settings.xml",
	} {
		made(t, home, name)
	}
	env := map[string]string{"PNPM_HOME": home + "/elsewhere/pnpm", "GOBIN": "relative", "NVM_DIR": home + "/.nvm/", "PYENV_ROOT": "/etc"}
	search := strings.Join([]string{home + "/.nvm/versions/node/v22/bin", "bin", "", "/usr/bin", home + "/.pyenv/shims", home + "/nothere"}, ":")
	found := Detect(Machine{Home: home, Path: search, Getenv: func(name string) string { return env[name] }})
	for tool, want := range map[string]string{
		"nvm": "/.nvm", "pyenv": "/.pyenv", "cargo": "/.cargo/bin", "go": "/sdk", "uv": "/.local/share/uv/python", "pnpm": "/elsewhere/pnpm",
	} {
		if got := found.of(tool); !slices.Equal(got, []string{home + want}) {
			t.Errorf("%s: %q, want %s", tool, got, want)
		}
	}
	if want := []string{home + "/.nvm/versions/node/v22/bin", "/usr/bin", home + "/.pyenv/shims"}; !slices.Equal(found.Path, want) {
		t.Errorf("the search path is %q, want %q", found.Path, want)
	}
	if found.Env["PNPM_HOME"] != home+"/elsewhere/pnpm" || found.Env["NVM_DIR"] != home+"/.nvm" || found.Env["PYENV_ROOT"] != "" {
		t.Errorf("variables: %v", found.Env)
	}
	if len(found.Refused) != 1 || found.Refused[0].Path != "/etc" {
		t.Errorf("refused: %+v", found.Refused)
	}
}

// An agent that can write to the home puts a link where a toolchain would be: the next sandbox must not show what it leads to.
func TestPlantedLinksAreRefused(t *testing.T) {
	home := newHome(t)
	made(t, home, ".ssh/id_ed25519")
	made(t, home, ".toolward/state.db")
	made(t, home, "shared/bin/tool")
	for link, target := range map[string]string{
		".nvm": ".ssh", ".pyenv": "..", ".rustup": ".toolward", ".volta": "/etc", ".cargo": ".ssh", ".local": "shared", "sdk": home,
	} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, ".ssh", "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	found := Detect(Machine{Home: home, Path: home + "/.cargo/bin:" + home + "/.local/bin", Getenv: func(name string) string {
		return map[string]string{"GOROOT": home, "ASDF_DIR": filepath.Dir(home), "PNPM_HOME": home + "/../" + filepath.Base(home) + "/.nvm"}[name]
	}})
	if len(found.Dirs) != 0 {
		t.Errorf("shown: %+v", found.Dirs)
	}
	for _, name := range []string{".nvm", ".pyenv", ".rustup", ".volta", ".cargo/bin", ".local/bin", "sdk"} {
		if !slices.ContainsFunc(found.Refused, func(r Refusal) bool {
			return r.Path == filepath.Join(home, name) && strings.Contains(r.Why, "symbolic link")
		}) {
			t.Errorf("%s is not refused as a link: %+v", name, found.Refused)
		}
	}
}

func TestCredentialsAreHidden(t *testing.T) {
	home := newHome(t)
	secret := made(t, home, ".nvm/versions/node/v22/etc/npmrc")
	made(t, home, ".nvm/versions/node/v22/bin/node")
	top := made(t, home, ".nvm/.npmrc")
	remote := made(t, home, ".nvm/.git/config")
	if err := os.Symlink(secret, filepath.Join(home, ".nvm/npmrc")); err != nil {
		t.Fatal(err)
	}
	want := []string{remote, top, secret}
	slices.Sort(want)
	if got := (Dir{"nvm", home + "/.nvm"}).Hidden(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	odd := made(t, home, "a[b]*", ".npmrc")
	if got := (Dir{"", filepath.Dir(odd)}).Hidden(); !slices.Equal(got, []string{odd}) {
		t.Errorf("%q", got)
	}
}

// Caches and settings of package managers go along; an address that logs in does not, and is told by name.
func TestCachesAndSettings(t *testing.T) {
	home := newHome(t)
	made(t, home, "go/pkg/mod/x@v1/x.go")
	made(t, home, ".npm/_cacache/index")
	made(t, home, "builds/x")
	made(t, home, ".ssh/id")
	made(t, home, ".config/go/env")
	if err := os.WriteFile(filepath.Join(home, ".config/go/env"), []byte("GOPROXY=https://proxy.example,direct\nGOPRIVATE=git.example\nPATH=/evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.ssh", filepath.Join(home, ".cache")); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"GOCACHE=" + home + "/builds", "GOPRIVATE=other.example", "GOSUMDB=off", "PIP_INDEX_URL=https://me:pw@pypi.example/simple", "PIP_TIMEOUT=10",
		"npm_config_registry=https://npm.example/", "NPM_CONFIG__AUTHTOKEN=x", "npm_config_//npm.example/:_authToken=x", "npm_config_userconfig=/etc/npmrc",
		"NODE_ENV=test", "PIP_EXTRA_INDEX_URL=https://a.example https://token@b.example", "npm_config_proxy=http://p.example?token=x", "SECRET=x",
	}
	found := Detect(Machine{Home: home, Environ: environ, Getenv: func(name string) string {
		for _, v := range environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value
			}
		}
		return ""
	}})
	var caches []string
	for _, d := range found.Caches {
		caches = append(caches, d.Tool+" "+d.Path)
	}
	if want := []string{"go-modules " + home + "/go/pkg/mod", "go-build " + home + "/builds", "npm-cache " + home + "/.npm/_cacache"}; !slices.Equal(caches, want) {
		t.Errorf("caches: %q, want %q", caches, want)
	}
	want := map[string]string{
		"GOCACHE": home + "/builds", "GOPROXY": "https://proxy.example,direct", "GOPRIVATE": "other.example", "GOSUMDB": "off", "PIP_TIMEOUT": "10",
		"npm_config_registry": "https://npm.example/", "NODE_ENV": "test",
	}
	if !maps.Equal(found.Env, want) {
		t.Errorf("settings: %v, want %v", found.Env, want)
	}
	if told := []string{"NPM_CONFIG__AUTHTOKEN", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "npm_config_//npm.example/:_authToken", "npm_config_proxy", "npm_config_userconfig"}; !slices.Equal(found.Withheld, told) {
		t.Errorf("withheld: %q", found.Withheld)
	}
}
