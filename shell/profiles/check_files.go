package profiles

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkInto adds the names that appear when files are put into a directory: "cp x/.envrc ." writes ./.envrc, and only
// its own name tells that it is protected.
func checkInto(a *arguments) {
	if a.has("-d") && a.section.Operands != nil && a.profile.Names[0] == "install" || a.has("--directory") {
		return
	}
	sources := a.operands
	target, named := a.value("-t", "--target-directory")
	if !named {
		if len(sources) < 2 {
			return
		}
		target, sources = sources[len(sources)-1], sources[:len(sources)-1]
	}
	if a.tooLong(target, len(sources)) {
		return
	}
	whole := a.has("-T") || a.has("--no-target-directory")
	isDir := named || len(sources) > 1 || strings.HasSuffix(target, "/") || path.Base(target) == "." || path.Base(target) == ".."
	for _, source := range sources {
		name := path.Base(source)
		contents := whole || name == "." || name == ".."
		if contents && a.recursive() {
			// What lies in the directory lands in the target under names that nobody sees here: .git/hooks, say.
			a.does(shell.Effect{Kind: shell.Unknown, Via: "the contents of " + source})
		}
		if !contents {
			a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(target, name), IfIn: !isDir})
		}
	}
}

// maxJoined bounds, in bytes, the paths that names make below a directory: one long name and a thousand files would make
// megabytes of them from one line.
const maxJoined = 64 << 10

// tooLong reports, and says, that the names of files below a directory are longer together than anybody reads.
func (a *arguments) tooLong(dir string, files int) bool {
	if len(dir)*files <= maxJoined {
		return false
	}
	a.does(shell.Effect{Kind: shell.Unknown, Via: "so many files in a directory with so long a name"})
	return true
}

// recursive reports whether cp copies directories.
func (a *arguments) recursive() bool {
	for _, option := range []string{"-r", "-R", "--recursive", "-a", "--archive"} {
		if a.has(option) {
			return true
		}
	}
	return false
}

// checkLink tells what ln makes and where it leads. A link that leads out of the workspace would let later writes
// follow it.
func checkLink(a *arguments) {
	targets := a.operands
	link, inDir := a.value("-t", "--target-directory")
	switch {
	case len(targets) == 0:
		return
	case inDir:
	case len(targets) == 1:
		link, inDir = ".", true
	default:
		link, targets = targets[len(targets)-1], targets[:len(targets)-1]
		a.does(shell.Effect{Kind: shell.Writes, Path: link})
	}
	if a.tooLong(link, len(targets)) {
		return
	}
	whole := a.has("-T") || a.has("--no-target-directory")
	isDir := inDir || len(targets) > 1 || strings.HasSuffix(link, "/")
	for _, target := range targets {
		if !whole {
			a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(link, path.Base(target)), IfIn: !isDir})
		}
		switch symbolic := a.has("-s") || a.has("--symbolic"); {
		case !symbolic:
			// A second name for a file: who writes to the one changes the other.
			a.does(shell.Effect{Kind: shell.Writes, Path: target})
		case path.IsAbs(target) || a.has("-r") || a.has("--relative"):
			a.does(shell.Effect{Kind: shell.Reads, Path: target})
			if path.IsAbs(target) {
				// What lies below it has two names from now on. The next part of the command may use the new one, and
				// when that was judged the link was not there: "ln -s /proc x && cat x/self/environ".
				a.does(shell.Effect{Kind: shell.Enters, Path: target})
			}
		default: // relative to where the link lies
			kinds := []shell.Kind{shell.Reads}
			if strings.HasPrefix(path.Clean(target), "..") {
				kinds = append(kinds, shell.Enters)
			}
			for _, kind := range kinds {
				if !isDir {
					a.effects = append(a.effects, shell.Effect{Kind: kind, Path: target, Dir: path.Join(a.dir, path.Dir(link))})
				}
				a.effects = append(a.effects, shell.Effect{Kind: kind, Path: target, Dir: path.Join(a.dir, link), IfIn: !isDir})
			}
		}
	}
}

// checkMode looks for modes by which a program gets the rights of another user.
func checkMode(a *arguments) {
	mode, given := a.value("-m", "--mode")
	if a.profile.Names[0] == "chmod" && !a.has("--reference") && len(a.operands) > 0 {
		mode, given = a.operands[0], true
	}
	if given && setsUser(mode) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: mode})
	}
}

// setsUser reports whether a mode, such as 4755 or u+s, has the bits that change the user or group of a program.
func setsUser(mode string) bool {
	if digits := strings.TrimLeft(mode, "+-=0"); shell.IsNumber(digits) {
		return len(digits) > 3 && digits[len(digits)-4] != '1'
	}
	for clause := range strings.SplitSeq(mode, ",") {
		if i := strings.IndexAny(clause, "+="); i >= 0 && (strings.ContainsAny(clause[i:], "s") || strings.ContainsAny(clause[i:], "4567") && len(clause)-i > 4) {
			return true
		}
	}
	return false
}

// checkDD reads the operands of dd, which are its options: if=in of=out.
func checkDD(a *arguments) {
	for _, word := range a.operands {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "if":
			a.does(shell.Effect{Kind: shell.Reads, Path: value, Via: name})
		case "of":
			a.does(shell.Effect{Kind: shell.Writes, Path: value, Via: name})
		case "bs", "cbs", "conv", "count", "ibs", "obs", "iflag", "oflag", "seek", "skip", "iseek", "oseek", "status",
			"--help", "--version", "--":
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkPatch adds what the patch names: files below the directory. The names of options before -d are below it, too.
func checkPatch(a *arguments) {
	a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	if a.dir == "" {
		return
	}
	for _, e := range a.effects {
		if e.Dir == "" && e.Path != "" && !path.IsAbs(e.Path) && e.Kind != shell.Enters {
			a.does(shell.Effect{Kind: e.Kind, Path: e.Path, Via: e.Via})
		}
	}
}

// checkSplit adds the files that are written if nobody names them, and looks at what their names become.
func checkSplit(a *arguments) {
	if a.profile.Names[0] == "csplit" {
		prefix, given := a.value("-f", "--prefix")
		if !given {
			prefix = "xx"
			a.does(shell.Effect{Kind: shell.Writes, Path: prefix})
		}
		format, _ := a.value("-b", "--suffix-format")
		a.checkPieces(prefix, "")
		if !plainFormat.MatchString(format) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: format})
		}
		return
	}
	prefix := "x"
	if len(a.operands) > 1 {
		prefix = a.operands[1]
	} else {
		a.does(shell.Effect{Kind: shell.Writes, Path: prefix})
	}
	suffix, _ := a.value("--additional-suffix")
	a.checkPieces(prefix, suffix)
}

// plainVariable is a variable, or an element of one, whose name a shell has nothing to evaluate in.
var plainVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\[([A-Za-z0-9_]*|[@*])\])?$`)

// evaluatedSubscript is a subscript in which a shell would run a command: test -v 'a[$(id)]'. The programs test and
// printf do not look into it, but whoever runs the text in a shell has them as its own commands.
var evaluatedSubscript = regexp.MustCompile("\\[[^]]*[$`]")

// checkSubscripts looks for arguments that shells evaluate as arithmetic, with the subscripts in them.
func checkSubscripts(a *arguments) {
	for _, word := range a.operands {
		if evaluatedSubscript.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: word})
		}
	}
}

// comparesNumbers are the operators of test on whose sides shells evaluate arithmetic.
var comparesNumbers = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}

// checkTest reads the conditions of test: which files does it look at, and what would a shell evaluate in them?
func checkTest(a *arguments) {
	words := a.operands
	for i, word := range words {
		switch {
		case (word == "-v" || word == "-R") && i+1 < len(words) && words[i+1] != "]":
			if !plainVariable.MatchString(words[i+1]) {
				a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: words[i+1], Via: word})
			}
		case slices.Contains(comparesNumbers, word) || word == "-t":
			for _, n := range []int{i - 1, i + 1} {
				if n >= 0 && n < len(words) && strings.ContainsAny(words[n], "[$`(") && words[n] != "[" {
					a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: words[n], Via: word})
				}
			}
		case word == "-nt" || word == "-ot" || word == "-ef":
			for _, n := range []int{i - 1, i + 1} {
				if n >= 0 && n < len(words) {
					a.does(shell.Effect{Kind: shell.Reads, Path: words[n], Via: word})
				}
			}
		case len(word) == 2 && word[0] == '-' && strings.Contains("bcdefghkLNOpGrsSuwx", word[1:]) && i+1 < len(words):
			if next := words[i+1]; next != "]" && next != "" {
				a.does(shell.Effect{Kind: shell.Reads, Path: next, Via: word})
			}
		}
	}
}
