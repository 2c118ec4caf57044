package command

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/internal/gatetest"
)

func TestEnvironmentVectors(t *testing.T) {
	gatetest.Run(t, "exec.json", "env", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Mode            Overrides
			Base, Overrides map[string]string
		}
		gatetest.Decode(t, input, &in)
		env, err := NewEnvironment(nil).Build(in.Base, in.Overrides, in.Mode)
		if forbidden, ok := errors.AsType[*ForbiddenVariable](err); ok {
			return map[string]any{"error": "forbidden-env", "key": forbidden.Name}
		}
		return map[string]any{"env": env}
	})
	gatetest.Run(t, "exec.json", "envHash", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Env map[string]string }
		gatetest.Decode(t, input, &in)
		hash, names := binding.EnvironmentHash(in.Env)
		out := map[string]any{"envHash": nil, "envKeys": append([]string{}, names...)}
		if hash != "" {
			out["envHash"] = hash
		}
		return out
	})
}

func TestInherited(t *testing.T) {
	e := NewEnvironment([]string{"MY_PROXY", "LD_PRELOAD", "TOOLWARD_TOKEN"})
	environ := []string{
		"MY_PROXY=p", "LD_PRELOAD=x", "TOOLWARD_TOKEN=t", "PATH=.:/bin::rel:/usr/bin:/bin:/usr/bin/", "BASH_FUNC_ls%%=() { id; }",
		"OTHER=o", "nonsense", "=x", "LANG=a\x00b",
	}
	// Naming a loader variable or one of the gateway's own passes nothing.
	want := map[string]string{
		"MY_PROXY": "p", "PATH": "/opt/x:/bin:/usr/bin", "TERM": "dumb",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit",
	}
	if got := e.Inherited(environ, []string{"/opt/x", "rel"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	more := NewEnvironment([]string{"GIT_CONFIG_COUNT"}).Inherited([]string{"GIT_CONFIG_COUNT=2"}, nil)
	if more["GIT_CONFIG_COUNT"] != "3" || more["GIT_CONFIG_KEY_2"] != "safe.bareRepository" {
		t.Errorf("settings that are there already: %v", more)
	}
	if got := e.Inherited([]string{}, nil)["PATH"]; got != "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" {
		t.Errorf("default PATH is %q", got)
	}
}

// TestSettable are variables of disclosed attacks and of their families, and harmless neighbors.
func TestSettable(t *testing.T) {
	e := NewEnvironment(nil)
	for _, name := range strings.Fields(`LD_DEBUG_OUTPUT HOME SHELL BASHOPTS PROMPT_COMMAND PYTHONHOME PYTHONWARNINGS
		PERL5OPT PERL5DB JAVA_TOOL_OPTIONS GIT_SSH GIT_PAGER EDITOR GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS GIT_ALLOW_PROTOCOL
		LESSCLOSE GNUMAKEFLAGS GOPROXY GOENV npm_config_script_shell PIP_CONFIG_FILE CLOUDSDK_PYTHON GCONV_PATH LOCPATH
		TERMINFO http_proxy SSL_CERT_FILE KUBECONFIG OPENAI_BASE_URL CODEX_HOME CLAUDE_CONFIG_DIR R_PROFILE_USER INPUTRC
		EXINIT VIMINIT DEBUGINFOD_URLS GREP_OPTIONS Path TOOLWARD_HOME GIT_TRACE CARGO_TARGET_X_RUNNER LUA_INIT_5_4
		POSIXLY_CORRECT PYTEST_ADDOPTS CMAKE_TOOLCHAIN_FILE CMAKE_CXX_COMPILER_LAUNCHER MANOPT ELECTRON_RUN_AS_NODE
		TS_NODE_COMPILER ASPNETCORE_HOSTINGSTARTUPASSEMBLIES LEIN_JVM_OPTS AZURE_CONFIG_DIR CARGO_HTTP_CAINFO APT_CONFIG
		PATCH_GET GODEBUG Ld_Preload bash_env BASH_FUNC_x GRADLE_OPTS`) {
		if e.Settable(name, "x") {
			t.Errorf("a call may set %s", name)
		}
	}
	for _, name := range strings.Fields(`LC_ALL NO_COLOR FORCE_COLOR COLORTERM CI GOOS GOARCH GOARM TZ LANG TERM NODE_ENV CGO_ENABLED
		RUST_BACKTRACE RUST_LOG DEBUG MY_TOKEN GIT_AUTHOR_NAME CARGO_TERM_COLOR CARGO_INCREMENTAL PYTHONUNBUFFERED COLUMNS
		LINES DEBIAN_FRONTEND CMAKE_BUILD_TYPE VERBOSE PORT MANAGER_NAME _`) {
		if !e.Settable(name, "x") {
			t.Errorf("a call may not set %s", name)
		}
	}
	for _, name := range []string{"", " ", "LD_PRELOAD ", " CI", "A=B", "A\nB", "A\x00", "1A", "A-B", "BASH_FUNC_git()", "ſHELL", "PATΗ", "Ａ", "A\u200b", "A\xff"} {
		if e.Settable(name, "x") {
			t.Errorf("a call may set %q", name)
		}
	}
	if e.Settable("CI", "a\x00b") {
		t.Error("a value with NUL would be cut by the system: another value would run than was shown")
	}
}

// TestBuildFailsClosed: a way that is not known is the strictest one.
func TestBuildFailsClosed(t *testing.T) {
	_, err := NewEnvironment(nil).Build(nil, map[string]string{"PATH": "/x", "LD_PRELOAD": "x"}, "")
	forbidden, ok := errors.AsType[*ForbiddenVariable](err)
	if !ok || forbidden.Name != "LD_PRELOAD" {
		t.Errorf("got %v, want the first name in byte order", err)
	}
	if text := (&ForbiddenVariable{strings.Repeat("ä\n", 500)}).Error(); len(text) > 500 || strings.Contains(text, "\n") {
		t.Errorf("the message is %q", text)
	}
}

func TestEnvironmentHash(t *testing.T) {
	exact, _ := binding.EnvironmentHash(map[string]string{"A": "1"})
	padded, _ := binding.EnvironmentHash(map[string]string{"A": "1", " A": "2"})
	if exact != padded {
		t.Error("the exact name is what counts")
	}
	one, _ := binding.EnvironmentHash(map[string]string{"A": "\xff"})
	two, _ := binding.EnvironmentHash(map[string]string{"A": "\xfe"})
	if one == two || one == "" {
		t.Errorf("values that are not UTF-8 are not bound: %q, %q", one, two)
	}
	split, _ := binding.EnvironmentHash(map[string]string{"A": "1,B", "C": "2"})
	joined, _ := binding.EnvironmentHash(map[string]string{"A": "1", "B": ",C2"})
	if split == joined {
		t.Error("names and values run into each other")
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("PATH", "x", "LD_PRELOAD", "y")
	f.Add("A=B", "", "ſHELL", "\x00")
	e := NewEnvironment(nil)
	f.Fuzz(func(t *testing.T, name, value, other, otherValue string) {
		overrides := map[string]string{name: value, other: otherValue}
		strict, err := e.Build(map[string]string{"PATH": "/bin"}, overrides, RejectOverrides)
		loose, _ := e.Build(map[string]string{"PATH": "/bin"}, overrides, DropOverrides)
		narrow, _ := e.Build(map[string]string{"PATH": "/bin"}, overrides, WrapperOverrides)
		if loose["PATH"] != "/bin" || err == nil && !maps.Equal(strict, loose) {
			t.Fatalf("%q: %v %v", overrides, strict, loose)
		}
		for name := range narrow {
			if _, there := loose[name]; !there {
				t.Fatalf("a shell gets %q, other programs do not", name)
			}
		}
		for _, env := range []map[string]string{strict, loose, narrow} {
			for name, value := range env {
				if !envname.Portable(name) || strings.ContainsRune(value, 0) || envname.Never(name) {
					t.Fatalf("%q=%q got in", name, value)
				}
			}
		}
		for dir := range strings.SplitSeq(e.Inherited([]string{"PATH=" + value}, []string{other})["PATH"], ":") {
			if !path.IsAbs(dir) {
				t.Fatalf("PATH has %q", dir)
			}
		}
	})
}
