// Package registries finds the package registries that this machine's own configuration names: GOPROXY, .npmrc, pip.conf and
// cargo's config.toml of the user and of the system. What a project says is not read: agents write there.
//
// Of every address only scheme, host, port and path are kept. User names and passwords in it, and the tokens that stand beside
// it in the same files, are neither returned nor logged: nothing of them is to be in a sandbox.
package registries

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolward/toolward/netguard"
)

// Registry is one registry that the machine's configuration names.
type Registry struct {
	Pack string // whose packages it has: go, npm, pypi or crates
	Host string // in its one form
	Port uint16
	URL  string // without a user and a password
	Also bool   // beside the one that programs ask first, or for some packages only
	From string // the file, or the variable, that names it
}

// Machine is where configurations are looked for.
type Machine struct {
	Home   string                   // of the user; "" is none
	Root   string                   // before the paths of the system; "" is the system's own
	Getenv func(name string) string // of the environment that the person has started us in
}

// Find finds the registries of a machine, each once, in a fixed order. What cannot be read or understood names none.
func Find(m Machine) []Registry {
	var all []Registry
	add := func(pack, from, list string, also bool) {
		for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' || r == ' ' || r == '\n' || r == '\t' }) {
			r, ok := parse(text)
			r.Pack, r.From, r.Also = pack, from, also
			if same := func(other Registry) bool { return other.Pack == r.Pack && other.URL == r.URL }; ok && !slices.ContainsFunc(all, same) {
				all = append(all, r)
			}
		}
	}
	for _, s := range sources {
		for _, name := range s.variables {
			if value := m.Getenv(name); value != "" {
				add(s.pack, name, value, s.also)
			}
		}
		for _, path := range s.files {
			if path = m.path(path); path == "" {
				continue
			}
			for _, match := range s.form.FindAllStringSubmatch(read(path), -1) {
				add(s.pack, path, strings.Trim(match[1], `"'`), s.also)
			}
		}
	}
	return all
}

// sources are where programs look for their registries: variables, files ("~" is the home), and what a file says in group 1.
var sources = []struct {
	pack             string
	variables, files []string
	form             *regexp.Regexp
	also             bool
}{
	{"go", []string{"GOPROXY"}, []string{goEnv}, regexp.MustCompile(`(?m)^GOPROXY=(.+)$`), false},
	{"npm", []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"}, npmrc, regexp.MustCompile(`(?m)^[ \t]*registry[ \t]*=[ \t]*(\S+)`), false},
	{"npm", nil, npmrc, regexp.MustCompile(`(?m)^[ \t]*@[^:=\s]+:registry[ \t]*=[ \t]*(\S+)`), true},
	{"npm", nil, []string{"~/.yarnrc.yml"}, regexp.MustCompile(`(?m)^[ \t]*npmRegistryServer:[ \t]*(\S+)`), true},
	{"pypi", []string{"PIP_INDEX_URL", "UV_DEFAULT_INDEX"}, pipConf, regexp.MustCompile(`(?m)^index-url[ \t]*[=:][ \t]*([^\n]*)`), false},
	{
		"pypi",
		[]string{"PIP_EXTRA_INDEX_URL", "UV_INDEX_URL"},
		pipConf,
		regexp.MustCompile(`(?m)^extra-index-url[ \t]*[=:][ \t]*((?:[^\n]*)(?:\n[ \t]+[^\n]+)*)`), true,
	},
	{
		"crates", nil,
		[]string{"~/.cargo/config.toml", "~/.cargo/config"},
		regexp.MustCompile(`(?m)^[ \t]*(?:registry|index)[ \t]*=[ \t]*("[^"\n]+"|'[^'\n]+')`), true,
	},
}

const goEnv = "~/.config/go/env"

var (
	npmrc   = []string{"~/.npmrc", "/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"}
	pipConf = []string{"~/.config/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf", "/etc/xdg/pip/pip.conf"}
)

// Environment tells programs which registries to ask, where the configurations that name them are not there: what
// [Find] has found, as NAME and value, in a fixed order.
func Environment(found []Registry) (list [][2]string) {
	urls := func(pack string, also bool) (all []string) {
		for _, r := range found {
			if r.Pack == pack && r.Also == also {
				all = append(all, r.URL)
			}
		}
		return all
	}
	if all := urls("go", false); len(all) > 0 {
		list = append(list, [2]string{"GOPROXY", strings.Join(all, ",")})
	}
	if all := urls("npm", false); len(all) > 0 {
		list = append(list, [2]string{"npm_config_registry", all[0]})
	}
	if all := urls("pypi", false); len(all) > 0 {
		list = append(list, [2]string{"PIP_INDEX_URL", all[0]}, [2]string{"UV_DEFAULT_INDEX", all[0]})
	}
	if all := urls("pypi", true); len(all) > 0 {
		list = append(list, [2]string{"PIP_EXTRA_INDEX_URL", strings.Join(all, " ")}, [2]string{"UV_INDEX", strings.Join(all, " ")})
	}
	return list
}

func (m Machine) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if !filepath.IsAbs(m.Home) {
			return ""
		}
		return filepath.Join(m.Home, rest)
	}
	return filepath.Join("/", m.Root, name)
}

// maxFile bounds how much of a configuration is read.
const maxFile = 1 << 20

// read is the text of a configuration file; "" if it cannot be read.
func read(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "" // a pipe would hold up the start
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// parse reads one address. A registry that is not reached over HTTP, such as a directory, is none.
func parse(text string) (Registry, bool) {
	u, err := url.Parse(strings.TrimPrefix(text, "sparse+"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return Registry{}, false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	name := u.Hostname()
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Registry{}, false
	}
	host, _, err := netguard.ParseInternal(name + ":" + port)
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return Registry{Host: host, Port: uint16(n), URL: clean.String()}, err == nil
}
