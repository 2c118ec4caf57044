package profiles

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// effectsOfProgram is [Effects], for checks of programs that run other programs. It is set here and not where it is
// declared, since profiles name checks.
var effectsOfProgram func(program string, args []string) ([]shell.Effect, bool)

func init() { effectsOfProgram = Effects }

// inner adds what another program does that runs within this one.
func (a *arguments) inner(program string, args []string) {
	effects, known := effectsOfProgram(program, args)
	if !known {
		a.does(shell.Effect{Kind: shell.Unknown, Via: program})
		return
	}
	for _, e := range effects {
		if e.Path != "" && !path.IsAbs(e.Path) && !path.IsAbs(e.Dir) {
			e.Dir = path.Join(a.dir, e.Dir)
		}
		a.effects = append(a.effects, e)
	}
}

// pythonModules are modules that "python -m" runs and that are programs of their own, too.
var pythonModules = strings.Fields(`pytest tox nox ruff black isort mypy pyright flake8 pylint coverage pre_commit pip`)

// pythonWarning is an action for warnings. A category with a dot in it is a class whose module is imported.
var pythonWarning = regexp.MustCompile(`^\w+(:[^:]*(:\w*(:[^:]*(:\d*)?)?)?)?$`)

// pythonX are the settings of -X that only change how Python reports and checks.
var pythonX = strings.Fields("dev faulthandler showrefcount tracemalloc importtime utf8 warn_default_encoding no_debug_ranges frozen_modules int_max_str_digits cpu_count gil perf")

// checkPython reads the arguments of python: options, and a script, a module or program text.
func checkPython(a *arguments) {
	args := a.operands
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			pythonScript(a, args[1:])
			return
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			pythonScript(a, args)
			return
		case slices.Contains([]string{"--version", "--help", "-V", "-VV", "-h", "-?", "--help-env", "--help-xoptions", "--help-all"}, arg):
			return
		case arg == "--check-hash-based-pycs" && len(args) > 1:
			args = args[2:]
			continue
		case strings.HasPrefix(arg, "--"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			args = args[1:]
			continue
		}
		var done bool
		if args, done = pythonOptions(a, arg[1:], args[1:]); done {
			return
		}
	}
	pythonScript(a, nil)
}

// pythonOptions reads a cluster of options. With -c and -m, all that follows belongs to what is run: done.
func pythonOptions(a *arguments, cluster string, rest []string) (args []string, done bool) {
	for i, letter := range cluster {
		switch {
		case strings.ContainsRune("bBdEIOPqsSuvx", letter):
			continue
		case !strings.ContainsRune("cmWX", letter):
			a.does(shell.Effect{Kind: shell.Unknown, Via: "-" + cluster})
			if letter == 'i' {
				continue
			}
			return rest, false
		}
		value := cluster[i+1:]
		if value == "" {
			if len(rest) == 0 {
				a.does(shell.Effect{Kind: shell.Unknown, Via: "-" + cluster})
				return nil, true
			}
			value, rest = rest[0], rest[1:]
		}
		switch letter {
		case 'c':
			a.does(shell.Effect{Kind: shell.Evaluates, Text: value, Lang: "python", Via: "-c"})
			return nil, true
		case 'm':
			pythonModule(a, value, rest)
			return nil, true
		case 'W':
			if !pythonWarning.MatchString(value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: value, Via: "-W"})
			}
		case 'X':
			if name, _, _ := strings.Cut(value, "="); !slices.Contains(pythonX, name) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: value, Via: "-X"})
			}
		}
		return rest, false
	}
	return rest, false
}

// pythonScript: without a script, Python reads its program from standard input.
func pythonScript(a *arguments, operands []string) {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	a.word(Role{Name: "script"}, operands[0], "")
	a.console(operands)
}

// pythonModule looks at a module that is run. Any module that is installed could be named; those are known that are
// used every day.
func pythonModule(a *arguments, module string, args []string) {
	switch {
	case slices.Contains(pythonModules, module):
		before := len(a.effects)
		a.inner(strings.ReplaceAll(module, "_", "-"), args)
		for i := range a.effects[before:] {
			a.effects[before+i].By = module
		}
	case module == "unittest":
		pythonUnittest(a, args)
	case module == "venv":
		pythonVenv(a, args)
	case module == "json.tool":
		a.inner("python-json-tool", args)
	case module == "compileall" || module == "py_compile" || module == "tabnanny":
		pythonCompile(a, args)
	default:
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-m " + module})
	}
}

func pythonUnittest(a *arguments, args []string) {
	a.does(shell.Effect{Kind: shell.Project, Via: "-m unittest"})
	a.inner("python-unittest", args)
}

func pythonVenv(a *arguments, args []string) { a.inner("python-venv", args) }

func pythonCompile(a *arguments, args []string) { a.inner("python-compileall", args) }

// pipName is a package of the index: a name, extras, versions and a marker.
var pipName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(\[[\w, .-]*\])?\s*((==|>=|<=|~=|!=|<|>|===|@[~^]?)?\s*[\w.*+!-]+(\s*,\s*(==|>=|<=|~=|!=|<|>)\s*[\w.*+!-]+)*)?(\s*;.*)?$`)

// pipArchive are the names that pip takes for files.
var pipArchive = regexp.MustCompile(`(?i)\.(whl|zip|tar|tgz|tar\.(gz|bz2|xz)|tbz|txz)$`)

// checkPipPackages looks for packages that do not come from the index. The project itself, ".", runs its own code.
func checkPipPackages(a *arguments) {
	for _, p := range a.operands {
		own := p == "." || strings.HasPrefix(p, ".[") && strings.HasSuffix(p, "]")
		if !own && (!pipName.MatchString(p) || pipArchive.MatchString(p)) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		}
	}
}

// environmentTools are programs that lie in the environment of a project: "uv run pytest", "bundle exec rspec".
var environmentTools = append(strings.Fields(`python python3 ruby rspec rake rails rubocop jekyll`), pythonModules...)

// checkProjectTool looks at the program that is run within the project's environment: a script, a tool that usually
// lies there, or else any program at all.
func checkProjectTool(a *arguments) {
	if len(a.operands) == 0 {
		return
	}
	a.projectTool(a.operands)
	if at := slices.Index(a.operands, "--"); at > 0 {
		a.projectTool(slices.Delete(slices.Clone(a.operands), at, at+1)) // some of these programs keep it to themselves
	}
}

func (a *arguments) projectTool(argv []string) {
	switch word := argv[0]; {
	case slices.Contains(environmentTools, word):
		a.inner(word, argv[1:])
	case strings.HasSuffix(word, ".py") || word == "-" || schemeOf(word) != "":
		a.word(Role{Name: "script"}, word, "")
		a.console(argv)
	default:
		a.does(shell.Effect{Kind: shell.Runs, Argv: slices.Clone(argv)})
	}
}

// checkPythonModule looks at a module that is run by a program such as coverage.
func checkPythonModule(a *arguments) {
	if (a.has("-m") || a.has("--module")) && len(a.operands) > 0 {
		pythonModule(a, a.operands[0], a.operands[1:])
	}
}

// checkUvRun looks at what "uv run" runs: a module, a script, or a program.
func checkUvRun(a *arguments) {
	switch {
	case a.has("-m") || a.has("--module"):
		checkPythonModule(a)
	case !a.has("-s") && !a.has("--script") && !a.has("--gui-script"):
		checkProjectTool(a)
	}
}

// pytestSettings are settings that pytest takes from the command line and that load no code.
var pytestSettings = regexp.MustCompile(`^(log_\w+|console_output_style|junit_\w+|xfail_strict|asyncio_mode|timeout|filterwarnings|norecursedirs|testpaths|cache_dir)=[\w.%()-]*$`)

// checkPytest looks at tests by their path, at settings, and at where reports of coverage go.
func checkPytest(a *arguments) {
	checkNoResponseFiles(a)
	for _, word := range a.operands {
		file, _, _ := strings.Cut(word, "::")
		a.does(shell.Effect{Kind: shell.Enters, Path: file})
	}
	for _, g := range a.given {
		switch g.spelling {
		case "-o", "--override-ini":
			if !pytestSettings.MatchString(g.value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		case "--cov-report":
			if _, file, found := strings.Cut(g.value, ":"); found && file != "skip-covered" {
				a.does(shell.Effect{Kind: shell.Writes, Path: file, Via: g.spelling})
			}
		case "-W", "--pythonwarnings":
			if !pythonWarning.MatchString(g.value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		}
	}
}

// checkRuffFix: without paths, what is mended lies in the present directory.
func checkRuffFix(a *arguments) {
	if len(a.operands) == 0 && (a.has("--fix") || a.has("--fix-only") || a.has("--add-noqa")) {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
	if value, ok := a.value("--config"); ok && strings.Contains(value, "=") {
		a.does(shell.Effect{Kind: shell.Unknown, Text: value, Via: "--config"})
	}
}

// checkShownSetting: one word shows a setting, more of them change it.
func checkShownSetting(a *arguments) {
	if len(a.operands) > 1 || a.has("--unset") || a.has("--migrate") {
		a.does(shell.Effect{Kind: shell.Configures})
	}
}
