package settings

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/envname"
)

// Variable is one variable of an environment.
type Variable struct{ Name, Value string }

// EnvRules says which variables may go into a sandbox. They hold for what the configuration sets and for what a call
// sets, with every engine. The gateway's own environment never goes in.
type EnvRules struct {
	Allow  []string // exact names that may look like credentials, and pass even if Strict
	Strict bool     // only names that every system has
}

// EnvWarning is something odd about a variable that passed. Values are never told.
type EnvWarning struct {
	Name string `json:"key"`
	Code string `json:"code"`
}

// The codes of warnings.
const (
	WarnTooLong    = "too_long"
	WarnBase64Like = "base64_like"
)

// FilteredEnv is what became of an environment.
type FilteredEnv struct {
	Allowed  []Variable   // in the order given
	Blocked  []string     // names, sorted
	Warnings []EnvWarning // in the order given
}

const (
	maxPlainValue = 32768 // bytes of a value that nobody wonders about
	minBase64     = 80
)

var (
	// credentialEnds are the ends of names that hold credentials, in whatever program: OPENAI_API_KEY, GH_TOKEN,
	// SLACK_BOT_TOKEN, AWS_SECRET_ACCESS_KEY, MYPASSWORD, …
	credentialEnds = envname.NewSet("", "", `API_KEY TOKEN PASSWORD PRIVATE_KEY SECRET ACCESS_KEY ACCESS_KEY_ID SECRET_KEY
PASSWD PASSPHRASE CREDENTIAL CREDENTIALS COOKIE`)
	// leadNames hold credentials, or are the way to who holds them: agents of keys, buses, screens, engines, and the
	// credentials of clouds and of agents' own providers.
	leadNames = envname.NewSet(`SSH_AGENT_PID SSH_ASKPASS GPG_AGENT_INFO GNUPGHOME DISPLAY WAYLAND_DISPLAY XAUTHORITY
XDG_RUNTIME_DIR DOCKER_HOST DOCKER_CONFIG CONTAINER_HOST KUBECONFIG NETRC TMUX STY AWS_PROFILE GOOGLE_APPLICATION_CREDENTIALS
SUDO_ASKPASS PGPASSFILE MYSQL_PWD PIP_CONFIG_FILE NPM_CONFIG_USERCONFIG`,
		"DBUS_ TOOLWARD_ ANTHROPIC_ OPENAI_ VAULT_ OP_ BW_", "_SOCK _SOCKET _AUTH _AUTHTOKEN _PWD _PASS")
	// placeNames say where something is on the machine, or what the shell is in; a sandbox has its own.
	placeNames = envname.NewSet(`HOME USER LOGNAME SHELL PWD OLDPWD SHLVL _ TMPDIR TMP TEMP HOSTNAME MAIL XDG_CACHE_HOME
XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY`, "", "")
	// plainNames are those that every system has. Of them, some are dangerous on the host, where they choose the
	// programs of a command that was judged; in a sandbox they choose among programs of the sandbox.
	plainNames = envname.NewSet("PATH HOME USER SHELL TERM TZ NODE_ENV", "LC_", "")
)

// Filter applies the rules.
func (r EnvRules) Filter(given []Variable) FilteredEnv {
	var out FilteredEnv
	for _, v := range given {
		v.Name = sandbox.Trim(v.Name)
		if v.Name == "" {
			continue
		}
		if !r.allows(v) {
			out.Blocked = append(out.Blocked, v.Name)
			continue
		}
		if code := oddValue(v.Value); code != "" {
			out.Warnings = append(out.Warnings, EnvWarning{v.Name, code})
		}
		if i := slices.IndexFunc(out.Allowed, func(a Variable) bool { return a.Name == v.Name }); i >= 0 {
			out.Allowed[i] = v
			continue
		}
		out.Allowed = append(out.Allowed, v)
	}
	slices.Sort(out.Blocked)
	out.Blocked = slices.Compact(out.Blocked)
	return out
}

func (r EnvRules) allows(v Variable) bool {
	switch {
	case neverInside(v.Name, v.Value):
		return false
	case slices.Contains(r.Allow, v.Name):
		return true
	case credentialEnds.Has(v.Name):
		return false
	}
	return plain(v.Name) || !r.Strict
}

// OfClient is what of a guarded client's environment goes with its commands, in order. left are the names of what holds secrets
// or leads to those who do; secret reports whether a text holds one.
//
// What is dangerous on the machine goes along: it chooses among programs of the sandbox, and a virtual environment is nothing else.
func (r EnvRules) OfClient(environ []string, secret func(string) bool) (env, left []string) {
	for _, variable := range environ {
		name, value, ok := strings.Cut(variable, "=")
		switch {
		case !ok || !envname.Portable(name) || strings.ContainsRune(value, 0) || placeNames.Has(name):
		case slices.Contains(r.Allow, name):
			env = append(env, variable)
		case leadNames.Has(name) || credentialEnds.Has(name) || secret(value):
			left = append(left, name)
		case r.Strict && !plain(name):
			left = append(left, name)
		default:
			env = append(env, variable)
		}
	}
	return env, left
}

func plain(name string) bool { return name == "LANG" || plainNames.Has(name) }

// neverInside reports whether no setting lets a variable in.
func neverInside(name, value string) bool {
	return !envname.Portable(name) || strings.ContainsRune(value, 0) || envname.Dangerous(name) && !plain(name)
}

func oddValue(value string) string {
	switch {
	case len(value) > maxPlainValue:
		return WarnTooLong
	case len(value) >= minBase64 && strings.Trim(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == "":
		return WarnBase64Like
	}
	return ""
}

// variables is an environment in order of names.
func variables(env map[string]string) []Variable {
	list := make([]Variable, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, Variable{name, env[name]})
	}
	return list
}
