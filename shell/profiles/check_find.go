package profiles

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// The words of find's expressions, by how many words follow them and what those are. What -delete does is told before.
var (
	findPlain = strings.Fields(`-delete ( ) ! , -a -and -o -or -not -true -false -print -print0 -ls -prune -quit -depth -d
		-daystart -follow -mount -xdev -noleaf -warn -nowarn -nogroup -nouser -empty -executable -readable -writable
		-ignore_readdir_race -noignore_readdir_race -help --help -version --version`)
	findValues = strings.Fields(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -regextype
		-type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -used -perm -user -group -uid -gid -links -inum
		-maxdepth -mindepth -fstype -printf -context`)
	findReads = strings.Fields(`-newer -anewer -cnewer -samefile`)
	findFiles = strings.Fields(`-fprint -fprint0 -fls`)
	findRuns  = strings.Fields(`-exec -execdir -ok -okdir`)
)

// checkFind reads the arguments of find: options, where to begin, and an expression that can run, write and delete.
func checkFind(a *arguments) {
	args := findOptions(a.operands)
	var roots []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"(", ")", "!", ","}, args[0]) {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		a.does(shell.Effect{Kind: shell.Reads, Path: root})
	}
	elsewhere := slices.ContainsFunc(roots, func(root string) bool {
		return path.IsAbs(root) || strings.HasPrefix(path.Clean(root), "..")
	})
	if slices.Contains(args, "-delete") {
		for _, root := range roots {
			a.does(shell.Effect{Kind: shell.Writes, Path: root, Via: "-delete"})
		}
	}
	for len(args) > 0 {
		args = findTerm(a, args[0], args[1:], elsewhere)
	}
	if slices.Contains(a.operands, "-L") || slices.Contains(a.operands, "-follow") {
		for i := range a.effects {
			a.effects[i].Far = a.effects[i].Far || a.effects[i].Kind == shell.Reads
		}
	}
}

func findOptions(args []string) []string {
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "-H" || arg == "-L" || arg == "-P":
			args = args[1:]
		case strings.HasPrefix(arg, "-O") && shell.IsNumber(arg[2:]):
			args = args[1:]
		case arg == "--":
			return args[1:]
		default:
			return args
		}
	}
	return args
}

// findTerm reads one word of the expression and what belongs to it, and returns the rest.
func findTerm(a *arguments, word string, rest []string, elsewhere bool) []string {
	takes := func(n int) ([]string, []string) {
		if len(rest) < n {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
			return nil, nil
		}
		return rest[:n], rest[n:]
	}
	switch {
	case slices.Contains(findPlain, word):
		return rest
	case slices.Contains(findValues, word):
		_, rest = takes(1)
	case slices.Contains(findReads, word), strings.HasPrefix(word, "-newer") && len(word) == len("-newerXY") && word[7] != 't':
		var file []string
		if file, rest = takes(1); file != nil {
			a.does(shell.Effect{Kind: shell.Reads, Path: file[0], Via: word})
		}
	case strings.HasPrefix(word, "-newer") && len(word) == len("-newerXt"):
		_, rest = takes(1)
	case slices.Contains(findFiles, word), word == "-fprintf":
		n := 1
		if word == "-fprintf" {
			n = 2
		}
		var file []string
		if file, rest = takes(n); file != nil {
			a.does(shell.Effect{Kind: shell.Writes, Path: file[0], Via: word})
		}
	case slices.Contains(findRuns, word):
		return findCommand(a, word, rest, elsewhere)
	default:
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	}
	return rest
}

// findCommand reads the command of -exec and its like. It gets names of files where "{}" stands.
func findCommand(a *arguments, word string, rest []string, elsewhere bool) []string {
	end := slices.IndexFunc(rest, func(s string) bool { return s == ";" })
	for i := 1; i < len(rest) && (end < 0 || i < end); i++ {
		if rest[i] == "+" && rest[i-1] == "{}" { // the first that stands after "{}": what follows are other terms
			end = i
		}
	}
	if end < 1 {
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		return nil
	}
	argv := rest[:end]
	switch inDir := strings.HasSuffix(word, "dir"); {
	case strings.HasPrefix(word, "-ok") && rest[end] == "+": // for some finds this is no end
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	case marked(argv, "{}"): // the files themselves are run, or their names become a part of a script
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	case inDir && (strings.Contains(argv[0], "/") && !path.IsAbs(argv[0]) || elsewhere):
		// It works where the files lie: relative names mean something else than here.
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	}
	a.does(shell.Effect{Kind: shell.Runs, Argv: slices.Clone(argv), Open: true, Via: word})
	return rest[end+1:]
}
