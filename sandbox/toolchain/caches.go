package toolchain

import (
	"bufio"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// cacheKinds say where caches of the machine lie. None of them holds credentials: what logs in where they are filled from is
// beside them (~/.npmrc, ~/.m2/settings.xml, ~/.gradle/gradle.properties, ~/.cargo/credentials.toml). ~/.cargo/git is none of them: its
// repositories keep the addresses that they came from, tokens included. The first directory counts.
var cacheKinds = []kind{
	{name: GoModules, dirs: []string{"$GOMODCACHE", "$GOPATH/pkg/mod", "~/go/pkg/mod"}},
	{name: "go-build", dirs: []string{"$GOCACHE", "~/.cache/go-build"}},
	{name: "npm-cache", dirs: []string{"$npm_config_cache/_cacache", "~/.npm/_cacache"}},
	{name: "pip-cache", dirs: []string{"$PIP_CACHE_DIR", "~/.cache/pip"}},
	{name: "uv-cache", dirs: []string{"$UV_CACHE_DIR", "~/.cache/uv"}},
	{name: "cargo-registry", dirs: []string{"$CARGO_HOME/registry", "~/.cargo/registry"}},
	{name: "gradle-caches", dirs: []string{"$GRADLE_USER_HOME/caches", "~/.gradle/caches"}},
	{name: "gradle-wrapper", dirs: []string{"$GRADLE_USER_HOME/wrapper", "~/.gradle/wrapper"}},
	{name: "maven-repository", dirs: []string{"~/.m2/repository"}},
	{name: "yarn-cache", dirs: []string{"~/.cache/yarn"}},
}

// GoModules is the cache of Go's modules, which Go itself can read in another way where nothing can be laid over it.
const GoModules = "go-modules"

// cacheVariables are told inside where they name a cache that is shown.
var cacheVariables = []string{"GOMODCACHE", "GOCACHE", "GOPATH", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CARGO_HOME", "GRADLE_USER_HOME"}

// caches looks for caches, by the same rules as for toolchains.
func (f *Found) caches(m *Machine) {
	for i := range cacheKinds {
		for _, written := range cacheKinds[i].dirs {
			dir := m.expand(written)
			if dir == "" {
				continue
			}
			own := Found{}
			if own.take(Dir{cacheKinds[i].name, dir}, m.Home); len(own.Dirs) > 0 {
				f.Caches = append(f.Caches, own.Dirs...)
				break
			}
			f.Refused = append(f.Refused, own.Refused...)
		}
	}
	for _, name := range cacheVariables {
		value := m.Getenv(name)
		if value != "" && slices.ContainsFunc(f.Caches, func(d Dir) bool { return strings.HasPrefix(d.Path+"/", path.Clean(value)+"/") }) {
			f.Env[name] = path.Clean(value)
		}
	}
}

// goSettings are what people set of Go for all their work: where modules come from, and which are their own.
var goSettings = []string{"GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOFLAGS", "GOTOOLCHAIN", "GOINSECURE", "GOVCS"}

// notSettings are variables of pip and npm that lead to files of the machine, or log in somewhere.
var notSettings = []string{"auth", "token", "password", "passwd", "username", "otp", "cert", "key", "config_file", "userconfig", "globalconfig", "cafile", "client"}

// settings takes the settings of package managers along. An address that logs in is no setting but a secret: it is left out, and
// its name is told.
func (f *Found) settings(m *Machine, environ []string) {
	take := func(name, value string) {
		switch {
		case value == "" || path.IsAbs(value) && name != "VIRTUAL_ENV":
		case logsIn(value):
			f.Withheld = append(f.Withheld, name)
		default:
			f.Env[name] = value
		}
	}
	for _, name := range goSettings {
		take(name, m.Getenv(name))
	}
	for _, name := range []string{"NODE_ENV", "VIRTUAL_ENV"} {
		take(name, m.Getenv(name))
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		lower := strings.ToLower(name)
		if !strings.HasPrefix(lower, "npm_config_") && !strings.HasPrefix(name, "PIP_") {
			continue
		}
		if slices.ContainsFunc(notSettings, func(part string) bool { return strings.Contains(lower, part) }) {
			f.Withheld = append(f.Withheld, name)
			continue
		}
		take(name, value)
	}
	slices.Sort(f.Withheld)
	f.Withheld = slices.Compact(f.Withheld)
}

// logsIn reports whether an address in a value, one of several between commas, bars or spaces, has a user or a password in it.
func logsIn(value string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' || r == '\t' || r == '\n' }), func(text string) bool {
		_, after, found := strings.Cut(text, "://")
		if !found {
			return false
		}
		u, err := url.Parse(text)
		host, _, _ := strings.Cut(after, "/")
		return err != nil || u.User != nil || strings.Contains(host, "@") || u.RawQuery != "" // a query may be a token as well
	})
}

// withGoEnv is the environment with what "go env -w" has written, which counts where a variable is not set.
func withGoEnv(home string, getenv func(string) string) func(string) string {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	written := map[string]string{}
	if f, err := os.Open(filepath.Join(dir, "go", "env")); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), "="); ok && strings.HasPrefix(name, "GO") {
				written[name] = value
			}
		}
	}
	return func(name string) string {
		if value := getenv(name); value != "" {
			return value
		}
		return written[name]
	}
}
