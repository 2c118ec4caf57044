package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkNeedsScript: an interpreter without a script reads its program from standard input.
func checkNeedsScript(a *arguments) {
	asksOnly := slices.ContainsFunc([]string{"-v", "-V", "--version", "--help", "-h", "--copyright", "-m", "--modules", "-e", "-E", "-r", "--run", "-f", "--file"}, a.has)
	if len(a.operands) == 0 && !asksOnly {
		a.does(shell.Effect{Kind: shell.Evaluates, Via: "standard input"})
	}
}

// checkInterpreter reads the arguments of interpreters of which only the plain use is known: a script.
func checkInterpreter(a *arguments) {
	switch args := a.operands; {
	case len(args) == 1 && (args[0] == "-v" || args[0] == "--version"):
	case len(args) == 0:
		a.does(shell.Effect{Kind: shell.Evaluates, Via: "standard input"})
	case strings.HasPrefix(args[0], "-") && args[0] != "-":
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(args, " ")})
	default:
		a.word(Role{Name: "script"}, args[0], "")
	}
}

// checkTaskWords: rake puts variables into its environment.
func checkTaskWords(a *arguments) {
	for _, word := range a.operands {
		name, value, found := strings.Cut(word, "=")
		if found && !strings.Contains(name, "[") && (!slices.Contains(rakeVariables, name) || !harmlessValue.MatchString(value)) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// rakeVariables are variables that tasks of Rails and of tests look at.
var rakeVariables = strings.Fields("RAILS_ENV RACK_ENV NODE_ENV TEST SPEC VERSION STEP SCOPE VERBOSE SEED FORMAT DEBUG LOCALE COUNT N")

// rspecFormats are the formats that RSpec brings along; any other is a class that is loaded.
var rspecFormats = strings.Fields("p progress d documentation doc h html j json f failures")

// checkTestPlaces looks at tests by their path: what stands behind ":" or "[" is a line or an example.
func checkTestPlaces(a *arguments) {
	for _, word := range a.operands {
		file, _, _ := strings.Cut(word, ":")
		file, _, _ = strings.Cut(file, "[")
		a.does(shell.Effect{Kind: shell.Enters, Path: file})
	}
}

// checkRspec looks at the formatter, which is loaded if RSpec does not bring it along.
func checkRspec(a *arguments) {
	for _, g := range a.given {
		if (g.spelling == "-f" || g.spelling == "--format") && !slices.Contains(rspecFormats, g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
	}
}

// rubocopFormats are the formats that RuboCop brings along.
var rubocopFormats = strings.Fields(`progress p autogenconf clang c emacs e files fi fuubar fu github g html h json j junit ju
	markdown m offenses o pacman quiet q simple s tap t worst w`)

// checkRubocop: without paths, what is mended lies in the present directory.
func checkRubocop(a *arguments) {
	for _, g := range a.given {
		if (g.spelling == "-f" || g.spelling == "--format") && !slices.Contains(rubocopFormats, g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
		if g.option.Operands != nil && len(a.operands) == 0 {
			a.does(shell.Effect{Kind: shell.Writes, Path: ".", Via: g.spelling})
		}
	}
}

// composerName is a package of the registry, with a version perhaps; extensions of PHP count as packages.
var composerName = regexp.MustCompile(`^[a-z0-9][\w.-]*/[\w.*-]+([:=@ ][\w.*^~|<>=,@ -]*)?$|^(php|ext-[\w-]+|lib-[\w-]+)([:=].*)?$`)

func checkComposerPackages(a *arguments) {
	for _, p := range a.operands {
		if !composerName.MatchString(p) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		}
	}
}

// dotnetOption are the options of MSBuild, which begin with a slash or a dash: properties name programs and files.
var dotnetOption = regexp.MustCompile(`^(/|-)`)

// checkDotnet: behind "--" and with "/", options of MSBuild and of the tests follow.
func checkDotnet(a *arguments) {
	checkNoResponseFiles(a)
	for _, word := range a.operands {
		if dotnetOption.MatchString(word) && (strings.Contains(word, ":") || strings.Contains(word, "=")) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// The options of "dotnet run" that choose what is built; the others belong to MSBuild, or to the program after all.
var (
	dotnetRunFlags  = strings.Fields("--no-build --no-restore --no-launch-profile --no-dependencies --nologo")
	dotnetRunValues = strings.Fields("-c --configuration -f --framework -r --runtime -v --verbosity -lp --launch-profile --arch -a --os")
)

// checkDotnetRun looks for the project that is run, and at options up to "--".
func checkDotnetRun(a *arguments) {
	for i := 0; i < len(a.operands); i++ {
		word := a.operands[i]
		name, value, attached := strings.Cut(word, "=")
		switch {
		case word == "--":
			return
		case strings.HasPrefix(word, "@"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case !strings.HasPrefix(word, "-"), slices.Contains(dotnetRunFlags, word):
		case name == "--project", slices.Contains(dotnetRunValues, name):
			if !attached && i+1 < len(a.operands) {
				i++
				value = a.operands[i]
			}
			if name == "--project" {
				a.does(shell.Effect{Kind: shell.Enters, Path: value, Via: name})
			}
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkProtoc looks at where code is written, which may have options before it; the programs that write it are
// those of the search path.
func checkProtoc(a *arguments) {
	checkNoResponseFiles(a)
	for _, g := range a.given {
		if strings.HasSuffix(g.spelling, "_out") && !slices.Contains([]string{"-descriptor_set_out", "--descriptor_set_out", "-dependency_out", "--dependency_out"}, g.spelling) {
			place := g.value[strings.LastIndexByte(g.value, ':')+1:]
			a.does(shell.Effect{Kind: shell.Writes, Path: place, Via: g.spelling})
		}
	}
}
