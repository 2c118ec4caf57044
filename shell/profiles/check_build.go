package profiles

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// makeAssignment is a variable on make's command line; "!=" runs a shell.
var makeAssignment = regexp.MustCompile(`^([^\s=:+?!]+)\s*(!|\?|\+|:{1,3})?=\s*(.*)$`)

// harmlessVariables are variables by which makefiles let people choose what is built and how much is said. Any other
// variable may become a command: CC, SHELL, MAKEFLAGS, or whatever the makefile makes of it.
var harmlessVariables = strings.Fields(`V VERBOSE Q QUIET SILENT DEBUG NDEBUG RELEASE VERSION TAG REVISION COMMIT BRANCH DATE COVERAGE RACE
	BUILD BUILD_TYPE BUILDTYPE CONFIG CONFIGURATION MODE PROFILE ENV ENVIRONMENT STAGE TARGET ARCH GOOS GOARCH OS PLATFORM BOARD
	TEST TESTS TESTCASE RUN FILTER PKG PACKAGE SUITE N COUNT BENCH BENCHTIME FUZZTIME TIMEOUT PORT J JOBS NPROC COLOR CI SEED
	CGO_ENABLED STATIC WERROR LANG NAME FORCE DRY_RUN K LTO SANITIZE ASAN`)

// harmlessValue is text that is one word to every shell and no option.
var harmlessValue = regexp.MustCompile(`^([\w./,:@+%][\w./,:@+%-]*)?$`)

// checkMakeVariables looks at variables: what a makefile does with them is not known.
func checkMakeVariables(a *arguments) {
	checkInstallTarget(a, a.operands, "PREFIX", "prefix", "DESTDIR")
	checkVariables(a)
}

func checkVariables(a *arguments) {
	for _, word := range a.operands {
		m := makeAssignment.FindStringSubmatch(word)
		switch {
		case m == nil && strings.Contains(word, "="):
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case m == nil:
		case m[2] != "!" && (m[1] == "DESTDIR" || m[1] == "PREFIX" || m[1] == "prefix" || m[1] == "O") && harmlessValue.MatchString(m[3]):
			a.does(shell.Effect{Kind: shell.Writes, Path: m[3], Via: m[1]})
		case m[2] == "!", !slices.Contains(harmlessVariables, m[1]), !harmlessValue.MatchString(m[3]):
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case strings.HasPrefix(m[3], "/"), strings.Contains(m[3], ".."), strings.HasPrefix(path.Clean(m[3]), ".git"):
			a.does(shell.Effect{Kind: shell.Writes, Path: m[3], Via: m[1]}) // "make clean BUILD=/home" removes it
		}
	}
}

// checkInstallTarget: by convention, the targets "install" and "uninstall" change what lies below /usr/local, unless a
// variable says otherwise.
func checkInstallTarget(a *arguments, targets []string, variables ...string) {
	elsewhere := slices.ContainsFunc(targets, func(word string) bool {
		name, _, assigned := strings.Cut(word, "=")
		return assigned && slices.Contains(variables, strings.TrimRight(name, ":?"))
	})
	for _, target := range targets {
		if !elsewhere && slices.Contains([]string{"install", "uninstall", "install-strip"}, target) {
			a.does(shell.Effect{Kind: shell.Writes, Path: "/usr/local", Via: target})
		}
	}
}

// checkTaskVariables does the same for runners of tasks, whose words behind a task may be arguments of it: as long as
// they are plain words.
func checkTaskVariables(a *arguments) {
	checkVariables(a)
	for _, word := range a.operands {
		if !strings.Contains(word, "=") && !harmlessValue.MatchString(word) && (a.plain < 0 || strings.ContainsAny(word, "$`;&|<>()'\"\\\n ")) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

var (
	cmakeCompilers = regexp.MustCompile(`^(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(-[\d.]+)?$`)
	cmakeFlags     = regexp.MustCompile(`^(-(O\w*|g\w*|W[a-z][\w=-]*|w|fsanitize=[\w,-]+|fno-[\w-]+|fPIC|fPIE|std=[\w+]+|D\w+(=\w+)?|march=[\w-]+|pthread)\s*)*$`)
	linkerWord     = regexp.MustCompile(`-W[lap](\s|,|$)`)
	cmakeSimple    = regexp.MustCompile(`^[\w.;+-]*$`)
	cmakeCommand   = regexp.MustCompile(`(?i)(EXECUTABLE|COMMAND|PROGRAM|LAUNCHER|COMPILER|LINKER|TOOL|EMULATOR|INCLUDE|FLAGS|PATH|DIR|FILE)$`)
	cmakeKnown     = strings.Fields(`CMAKE_BUILD_TYPE CMAKE_EXPORT_COMPILE_COMMANDS CMAKE_C_STANDARD CMAKE_CXX_STANDARD CMAKE_VERBOSE_MAKEFILE
		CMAKE_POSITION_INDEPENDENT_CODE CMAKE_INTERPROCEDURAL_OPTIMIZATION CMAKE_COLOR_DIAGNOSTICS CMAKE_CONFIGURATION_TYPES
		CMAKE_CXX_EXTENSIONS CMAKE_OSX_ARCHITECTURES CMAKE_POLICY_VERSION_MINIMUM CMAKE_UNITY_BUILD CMAKE_SYSTEM_NAME`)
)

// checkCmake looks at settings, since some of them are programs and files that are obeyed, and at where things are
// installed.
func checkCmake(a *arguments) {
	for _, g := range a.given {
		if g.spelling == "-D" {
			cmakeSetting(a, g.value)
		}
	}
	if target, ok := a.value("-t", "--target"); ok {
		checkInstallTarget(a, []string{target})
	}
	if a.has("--install") && !a.has("--prefix") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "/usr/local", Via: "--install"})
	}
	if a.plain >= 0 && slices.ContainsFunc(a.operands[a.plain:], func(s string) bool { return !ninjaWord.MatchString(s) }) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "--"}) // options of the program that builds
	}
}

// ninjaWord are the words that people hand on to make or ninja.
var ninjaWord = regexp.MustCompile(`^(-[jkl]\d*|\d+|-[vnk]|VERBOSE=1|V=1|[\w.]+)$`)

func cmakeSetting(a *arguments, setting string) {
	name, value, _ := strings.Cut(setting, "=")
	name, _, _ = strings.Cut(name, ":")
	ok := false
	switch {
	case slices.Contains([]string{"CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER"}, name):
		ok = cmakeCompilers.MatchString(value)
	case strings.HasPrefix(name, "CMAKE_C_FLAGS"), strings.HasPrefix(name, "CMAKE_CXX_FLAGS"):
		ok = cmakeFlags.MatchString(value) && !linkerWord.MatchString(value)
	case strings.HasSuffix(name, "_args"): // of meson: options of compilers and linkers
		ok = cmakeFlags.MatchString(value) && !linkerWord.MatchString(value)
	case strings.HasSuffix(name, "_COMPILER_LAUNCHER"):
		ok = value == "ccache" || value == "sccache"
	case name == "CMAKE_INSTALL_PREFIX", name == "CMAKE_RUNTIME_OUTPUT_DIRECTORY":
		a.does(shell.Effect{Kind: shell.Writes, Path: value, Via: name})
		return
	case name == "CMAKE_TOOLCHAIN_FILE", name == "CMAKE_PREFIX_PATH":
		a.does(shell.Effect{Kind: shell.Enters, Path: value, Via: name})
		return
	case slices.Contains(cmakeKnown, name):
		ok = cmakeSimple.MatchString(value)
	case !strings.HasPrefix(name, "CMAKE_") && !cmakeCommand.MatchString(name):
		ok = cmakeSimple.MatchString(value)
	}
	if !ok {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-D " + setting})
	}
}

// checkNinja: of its tools, those are known that only tell or clean.
func checkNinja(a *arguments) {
	checkInstallTarget(a, a.operands)
	tool, ok := a.value("-t")
	if ok && !slices.Contains(strings.Fields("clean targets query graph commands compdb deps list inputs rules"), tool) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-t " + tool})
	}
}

// checkClangStyle: a style may be a file, whose lines are shown where they are no style.
func checkClangStyle(a *arguments) {
	for _, g := range a.given {
		if file, found := strings.CutPrefix(g.value, "file:"); found && g.spelling == "-style" {
			a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: g.spelling})
		}
	}
}

// compilerValues are the options "-f…=" of compilers whose value is a word and no file.
var compilerValues = strings.Fields(`sanitize no-sanitize sanitize-recover visibility diagnostics-color message-length max-errors
	error-limit lto stack-protector-strength inline-limit cf-protection excess-precision fp-contract ffp-contract fp-model
	abi-version template-depth constexpr-depth constexpr-steps constexpr-loop-limit tabstop vect-cost-model stack-limit-register
	macro-backtrace-limit template-backtrace-limit ms-compatibility-version openmp sanitize-coverage zero-call-used-regs
	debug-prefix-map file-prefix-map macro-prefix-map diagnostics-format diagnostics-show-option color-diagnostics
	input-charset exec-charset wide-exec-charset lto-partition lto-compression-level stack-reuse patchable-function-entry
	strict-flex-arrays trivial-auto-var-init simd-cost-model align-functions align-loops gnuc-version permissive-module`)

// checkCompiler looks at the options "-f", some of which name files and programs, at files of options, and at where
// the result goes if nothing says so.
func checkCompiler(a *arguments) {
	checkNoResponseFiles(a)
	for _, g := range a.given {
		if g.spelling != "-f*" {
			continue
		}
		if name, _, found := strings.Cut(g.value, "="); found && !slices.Contains(compilerValues, name) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: "-f" + name})
		}
	}
	if a.has("-o") || a.has("-o*") || a.has("-E") || a.has("-M") || a.has("-MM") || len(a.operands) == 0 ||
		slices.ContainsFunc(a.given, func(g given) bool { return g.spelling == "-f*" && g.value == "syntax-only" }) {
		return
	}
	if !a.has("-c") && !a.has("-S") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "a.out"})
		return
	}
	for _, source := range a.operands {
		suffix := ".o"
		if a.has("-S") {
			suffix = ".s"
		}
		base := path.Base(source)
		a.does(shell.Effect{Kind: shell.Writes, Path: strings.TrimSuffix(base, path.Ext(base)) + suffix})
	}
}
