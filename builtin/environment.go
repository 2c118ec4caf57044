package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/schema"
)

// nameSet is a set of environment names, compared in upper case: exact names, prefixes and suffixes.
type nameSet struct {
	names    map[string]bool
	prefixes []string
	suffixes []string
}

func newNameSet(names, prefixes, suffixes string) nameSet {
	s := nameSet{names: map[string]bool{}, prefixes: strings.Fields(prefixes), suffixes: strings.Fields(suffixes)}
	for _, name := range strings.Fields(names) {
		s.names[name] = true
	}
	return s
}

func (s *nameSet) has(name string) bool {
	name = strings.ToUpper(name)
	return s.names[name] ||
		slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(s.suffixes, func(p string) bool { return strings.HasSuffix(name, p) })
}

// environmentRules say which variables a command may inherit and which a call may set. Every name in the tables
// makes some ordinary program run, load or trust something that the variable names: setting it is running it.
type environmentRules struct {
	inherit    nameSet // taken over from the gateway's own environment
	never      nameSet // neither inherited nor set by a call
	noOverride nameSet // may be inherited, never set by a call
	harmless   nameSet // exceptions from the prefixes of noOverride
	wrapped    nameSet // all that a call may set for a shell wrapper on a node
}

func newEnvironmentRules(pass []string) *environmentRules {
	return &environmentRules{
		// An allowlist keeps the gateway's own secrets, and whatever a future version puts into its environment,
		// away from commands.
		inherit:    newNameSet(inheritedNames+" "+strings.ToUpper(strings.Join(pass, " ")), "LC_", ""),
		never:      newNameSet(neverNames, neverPrefixes, ""),
		noOverride: newNameSet(fixedNames, fixedPrefixes, fixedSuffixes),
		harmless:   newNameSet(harmlessNames, "GIT_AUTHOR_ GIT_COMMITTER_", ""),
		wrapped:    newNameSet("TERM LANG LC_ALL LC_CTYPE LC_MESSAGES COLORTERM NO_COLOR FORCE_COLOR", "", ""),
	}
}

const inheritedNames = `PATH HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR NO_COLOR FORCE_COLOR CLICOLOR
GOPATH GOCACHE GOMODCACHE CARGO_HOME RUSTUP_HOME NVM_DIR JAVA_HOME PYENV_ROOT VIRTUAL_ENV
XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME SSL_CERT_FILE SSL_CERT_DIR`

const (
	// TOOLWARD_ is the gateway's own.
	neverPrefixes = `LD_ DYLD_ BASH_FUNC_ TOOLWARD_`

	neverNames = `NODE_OPTIONS NODE_PATH PYTHONHOME PYTHONPATH PYTHONBREAKPOINT PERL5LIB PERL5OPT RUBYLIB RUBYOPT
BASH_ENV ENV BROWSER GIT_EDITOR GIT_EXTERNAL_DIFF GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_EXEC_PATH GIT_INDEX_FILE
GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE GIT_SEQUENCE_EDITOR GIT_TEMPLATE_DIR
GIT_SSL_NO_VERIFY GIT_SSL_CAINFO GIT_SSL_CAPATH CC CXX CARGO_BUILD_RUSTC CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER
CMAKE_C_COMPILER CMAKE_CXX_COMPILER SHELL SHELLOPTS BASHOPTS PS4 GCONV_PATH IFS SSLKEYLOGFILE JAVA_OPTS
JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS GLIBC_TUNABLES
MAVEN_OPTS MAKEFLAGS MFLAGS SBT_OPTS GRADLE_OPTS ANT_OPTS HGRCPATH`

	// The prefixes cover families in which new dangerous names keep appearing; harmlessNames takes out the rest.
	fixedPrefixes = `GIT_ NPM_CONFIG_ CARGO_REGISTRIES_ CARGO_TARGET_ CARGO_BUILD_ CGO_ PYTHON PERL RUBY NODE_ DENO_
YARN_ PNPM_ COREPACK_ BUN_ PIP_ UV_ POETRY_ BUNDLE_ GEM_ COMPOSER_ LUA_ R_ JULIA_ ERL_ DOTNET_ COMPLUS_ CORECLR_
DOCKER_ HELM_ TF_ ANSIBLE_ CLOUDSDK_ AWS_ENDPOINT_URL SYSTEMD_ OPENSSL_ SSL_ SSH_ LESS XDG_ MALLOC_ QT_ GTK_ GST_
BASH_ RUSTUP_ RUSTC RUSTDOC MAVEN_ GRADLE_ CLAUDE_ CODEX_ GEMINI_ OPENCLAW_ FZF_ GH_ TERMINFO`

	fixedSuffixes = `_PROXY _PAGER _EDITOR _ASKPASS _BROWSER _BASE_URL _API_BASE _PRELOAD`

	fixedNames = `PATH HOME ZDOTDIR GRADLE_USER_HOME GIT_SSH GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_ASKPASS GIT_PAGER
SSH_ASKPASS LESSOPEN LESSCLOSE PAGER MANPAGER EDITOR VISUAL FCEDIT SUDO_EDITOR PROMPT_COMMAND HISTFILE PERL5DB
PERL5DBCMD OPENSSL_CONF OPENSSL_ENGINES PYTHONSTARTUP PYTHONUSERBASE WGETRC CURL_HOME CLASSPATH CGO_CFLAGS
CGO_LDFLAGS GOFLAGS GOENV GOPATH GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GONOSUMCHECK CORECLR_PROFILER_PATH PHPRC
PHP_INI_SCAN_DIR DENO_DIR BUN_CONFIG_REGISTRY YARN_RC_FILENAME HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
NODE_TLS_REJECT_UNAUTHORIZED NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE
DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_CONTEXT PIP_INDEX_URL PIP_PYPI_URL PIP_EXTRA_INDEX_URL
PIP_CONFIG_FILE PIP_FIND_LINKS PIP_TRUSTED_HOST UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_PYTHON
LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH RUSTFLAGS CARGO_HOME VIRTUAL_ENV LUA_PATH
LUA_CPATH GEM_HOME GEM_PATH BUNDLE_GEMFILE COMPOSER_HOME XDG_CONFIG_HOME AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
AWS_WEB_IDENTITY_TOKEN_FILE AZURE_AUTH_LOCATION KUBECONFIG GOOGLE_APPLICATION_CREDENTIALS HELM_HOME
GOROOT GOTOOLCHAIN GOTOOLDIR GOCACHE GOCACHEPROG GOMODCACHE GOSUMDB GOINSECURE GOVCS GOAUTH GOWORK GOEXPERIMENT
CFLAGS CXXFLAGS CPPFLAGS LDFLAGS AR AS LD NM PKG_CONFIG PKG_CONFIG_PATH PKG_CONFIG_LIBDIR
GNUMAKEFLAGS MAKEFILES MAKE JAVA_HOME JAVACMD M2_HOME NVM_DIR PYENV_ROOT
LOCPATH NLSPATH TERMCAP HOSTALIASES RES_OPTIONS LOCALDOMAIN TZDIR GETCONF_DIR
INPUTRC EXINIT VIMINIT GVIMINIT MYVIMRC VIM VIMRUNTIME VIMDOS CDPATH GLOBIGNORE EXECIGNORE PS1 PS2 PS3 PROMPT
MAIL MAILPATH FPATH NULLCMD READNULLCMD GREP_OPTIONS TAR_OPTIONS GZIP ZIPOPT UNZIP RSYNC_RSH CVS_RSH SVN_SSH BZR_SSH
HGEDITOR HGUSER MORE DEBUGINFOD_URLS RIPGREP_CONFIG_PATH BAT_CONFIG_PATH PSQLRC PGSYSCONFDIR PGSERVICEFILE PGPASSFILE
MYSQL_HOME GNUPGHOME GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS CONTAINER_HOST AWS_CA_BUNDLE
GUILE_LOAD_PATH GUILE_LOAD_COMPILED_PATH TCLLIBPATH TCL_LIBRARY CAML_LD_LIBRARY_PATH ELIXIR_ERL_OPTIONS
ASAN_OPTIONS LSAN_OPTIONS MSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS GCOV_PREFIX LLVM_PROFILE_FILE GMON_OUT_PREFIX
GIO_MODULE_DIR GIO_EXTRA_MODULES LIBGL_DRIVERS_PATH`

	harmlessNames = `CGO_ENABLED GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS NODE_ENV PYTHONUNBUFFERED PYTHONIOENCODING
PYTHONUTF8 PYTHONHASHSEED PYTHONDONTWRITEBYTECODE PIP_NO_INPUT DOCKER_BUILDKIT`
)

// environmentMode says what happens with names that a call may not set.
type environmentMode string

const (
	environmentReject  environmentMode = "reject"        // the gateway: the call fails
	environmentDrop    environmentMode = "drop"          // a node: they are left out
	environmentWrapper environmentMode = "shell-wrapper" // a node running a shell: only a few survive
)

// forbiddenName is the error of a call that sets what it may not.
type forbiddenName struct{ name string }

func (e *forbiddenName) Error() string {
	return fmt.Sprintf("the environment variable %s may not be set by a call", quoteShort(e.name))
}

// build makes the environment of a command from an inherited one and the values of a call. In mode reject the error
// is a *forbiddenName for the first bad name in byte order.
func (r *environmentRules) build(base, overrides map[string]string, mode environmentMode) (map[string]string, error) {
	env := make(map[string]string, len(base)+len(overrides))
	for name, value := range base {
		if !r.never.has(name) {
			env[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		switch {
		case !r.settable(name, overrides[name]):
			if mode == environmentReject {
				return nil, &forbiddenName{name}
			}
		case mode == environmentWrapper && !r.wrapped.has(name):
		default:
			env[name] = overrides[name]
		}
	}
	return env, nil
}

// settable reports whether a call may set the variable. Names that are not portable are refused whatever they say:
// programs disagree about "LD_PRELOAD " and "A=B".
func (r *environmentRules) settable(name, value string) bool {
	if !portableName(name) || strings.ContainsRune(value, 0) || r.never.has(name) {
		return false
	}
	return !r.noOverride.has(name) || r.harmless.has(name)
}

func portableName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// inherited picks the variables of the gateway's own environment ("NAME=value") that commands get.
func (r *environmentRules) inherited(environ []string) map[string]string {
	base := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if ok && portableName(name) && r.inherit.has(name) && !r.never.has(name) {
			base[name] = value
		}
	}
	return base
}

// environmentHash binds an approval to the values that a call sets: SHA-256, lower hex, over the JSON list of
// [name, value] in byte order of the names, which are trimmed. Without any it is "".
func environmentHash(env map[string]string) (hash string, names []string) {
	values := map[string]string{}
	for name, value := range env {
		if name = strings.TrimSpace(name); portableName(name) {
			values[name] = value
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	names = slices.Sorted(maps.Keys(values))
	pairs := make([]any, len(names))
	for i, name := range names {
		pairs[i] = []any{name, values[name]}
	}
	encoded, err := schema.Canonical(pairs)
	if err != nil {
		// Only values that are not UTF-8 cannot be encoded; they never come out of decoded arguments. A hash that
		// matches nothing keeps such an approval from being used.
		return "invalid", names
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), names
}

// environmentList is the environment in the form that the operating system wants, in order of names.
func environmentList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
