package profiles

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkConfiguredBeside: configuration is looked for beside each file, and of these programs it is code.
func checkConfiguredBeside(a *arguments) {
	for _, word := range a.operands {
		a.does(shell.Effect{Kind: shell.Enters, Path: word})
	}
}

// checkAppPlace: an application is a module, or a file of code, with a name in it behind ":".
func checkAppPlace(a *arguments) {
	for _, g := range a.given {
		if g.spelling == "-A" || g.spelling == "--app" {
			file, _, _ := strings.Cut(g.value, ":")
			a.does(shell.Effect{Kind: shell.Enters, Path: file, Via: g.spelling})
		}
	}
}

// checkReportCode: a kind of report may be a file of code.
func checkReportCode(a *arguments) {
	if file, ok := a.value("--report"); ok {
		a.does(shell.Effect{Kind: shell.Enters, Path: file, Via: "--report"})
	}
}

// checkNoAddresses: a package that is named by an address or a repository is fetched from there, whoever that is.
func checkNoAddresses(a *arguments) {
	words := slices.Clone(a.operands)
	for _, g := range a.given {
		if g.spelling == "--diff" {
			words = append(words, g.value)
		}
	}
	for _, word := range words {
		if strings.ContainsAny(word, ":/") && !npmRegistryName.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkEsbuild: files stand behind "=" of an operand and of an alias, and what is written before it.
func checkEsbuild(a *arguments) {
	for _, word := range a.operands {
		if to, from, found := strings.Cut(word, "="); found {
			a.does(shell.Effect{Kind: shell.Writes, Path: to})
			a.does(shell.Effect{Kind: shell.Reads, Path: from})
		}
	}
	for _, g := range a.given {
		if _, file, found := strings.Cut(g.value, "="); found && strings.HasSuffix(g.spelling, "-alias:*") {
			a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: "--alias"})
		}
	}
}

// checkClangBehind: behind "--" stand options of the compiler, some of which load code.
func checkClangBehind(a *arguments) {
	if a.plain >= 0 && a.plain < len(a.operands) {
		a.inner("clang", append(slices.Clone(a.operands[a.plain:]), "-fsyntax-only"))
	}
}

// checkJustPlace: a recipe with a directory before it is that of another justfile.
func checkJustPlace(a *arguments) {
	for _, word := range a.operands {
		if strings.Contains(word, "=") {
			continue
		}
		if at := strings.LastIndex(word, "/"); at >= 0 {
			a.does(shell.Effect{Kind: shell.Enters, Path: word[:at+1]})
		}
		return
	}
}

// checkTestHarness: behind "--" stand options of Rust's tests, one of which writes a file.
func checkTestHarness(a *arguments) {
	if a.plain < 0 {
		return
	}
	words := a.operands[a.plain:]
	for i, word := range words {
		name, file, attached := strings.Cut(word, "=")
		if name != "--logfile" {
			continue
		}
		if !attached && i+1 < len(words) {
			file = words[i+1]
		}
		a.does(shell.Effect{Kind: shell.Writes, Path: file, Via: name})
	}
}

// goTestFlag are options of a test binary that write nothing.
var goTestFlag = regexp.MustCompile(`^--?test\.(v|run|skip|short|count|timeout|parallel|cpu|bench|benchtime|benchmem|failfast|list|shuffle|fullpath)(=|$)`)

// checkGoTestArgs: behind -args, too, a test binary takes options that name files to write.
func checkGoTestArgs(a *arguments) {
	for _, word := range a.behind {
		if strings.HasPrefix(strings.TrimLeft(word, "-"), "test.") && !goTestFlag.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkProjectConsoles: some scripts that frameworks put into a project run code that is given to them, or empty a database, which no
// undo brings back.
func checkProjectConsoles(a *arguments) { a.console(a.operands) }

func (a *arguments) console(argv []string) {
	if len(argv) == 0 {
		return
	}
	switch path.Base(argv[0]) {
	case "manage.py":
		if slices.ContainsFunc(argv[1:], func(s string) bool {
			return slices.Contains([]string{"shell", "shell_plus", "dbshell", "runscript"}, s)
		}) {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "python", Via: strings.Join(argv, " ")})
		}
		a.empties(argv, "flush", "reset_db", "reset_schema")
	case "artisan":
		if slices.Contains(argv[1:], "tinker") {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "php", Via: strings.Join(argv, " ")})
		}
		a.empties(argv, "migrate:fresh", "migrate:refresh", "migrate:reset", "db:wipe")
	}
}

func (a *arguments) empties(argv []string, words ...string) {
	if slices.ContainsFunc(argv[1:], func(s string) bool { return slices.Contains(words, s) }) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(argv, " ")})
	}
}

// checkImageHost: an image whose name begins with a host is asked for there, which tells that host whatever stands in the name.
func checkImageHost(a *arguments) {
	for _, word := range a.operands {
		a.imageHost(word)
	}
}

func (a *arguments) imageHost(image string) {
	host, _, found := strings.Cut(image, "/")
	if found && host != "docker.io" && (strings.ContainsAny(host, ".:") || host == "localhost") {
		a.does(shell.Effect{Kind: shell.Network, Host: host, Via: image, Remote: "https://" + image})
	}
}

// imageValue are the values of options about attestations that name no image: a generator is one that runs.
var imageValue = regexp.MustCompile(`^(true|false|mode=(min|max)|(type=(sbom|provenance)(,(mode=(min|max)|disabled=(true|false)))*))$`)

// checkImageValues looks at where a build takes a cache from, and at what makes its attestations.
func checkImageValues(a *arguments) {
	for _, g := range a.given {
		switch g.spelling {
		case "--provenance", "--sbom", "--attest":
			if !imageValue.MatchString(g.value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		case "--cache-from":
			a.imageCache(g.value)
		}
	}
}

func (a *arguments) imageCache(value string) {
	for part := range strings.SplitSeq(value, ",") {
		switch key, text, found := strings.Cut(part, "="); {
		case !found:
			a.imageHost(part)
		case key == "ref":
			a.imageHost(text)
		case key == "src":
			a.does(shell.Effect{Kind: shell.Reads, Path: text, Via: "--cache-from"})
		case key == "type" && slices.Contains([]string{"registry", "local", "gha"}, text), key == "scope":
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Text: value, Via: "--cache-from"})
		}
	}
}

// checkGhHost: a repository may name its host, and an address always does.
func checkGhHost(a *arguments) {
	words := slices.Clone(a.operands)
	if strings.HasPrefix(a.section.Command, "search ") { // they are words that are looked for
		words = nil
	}
	for _, g := range a.given {
		if g.spelling == "-R" || g.spelling == "--repo" {
			words = append(words, g.value)
		}
	}
	for _, word := range words {
		host, rest, _ := strings.Cut(word, "/")
		switch {
		case strings.Contains(word, "://"):
			a.forge(urlEffect(word, ""), word)
		case strings.Contains(word, "@") && strings.Contains(word, ":"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case strings.Contains(rest, "/") && strings.Contains(host, "."):
			a.forge(shell.Effect{Kind: shell.Network, Host: host}, "https://"+word)
		}
	}
}

// forge says that a host is talked to which is not the forge that these programs talk to anyway.
func (a *arguments) forge(e shell.Effect, via string) {
	if e.Kind != shell.Network || e.Host != "github.com" && e.Host != "gitlab.com" {
		e.Via, e.Remote = via, via
		a.does(e)
	}
}

// checkGhDownload: who made the files chose their names, which only a directory of their own keeps from meaning something.
func checkGhDownload(a *arguments) {
	dir, given := a.value("-D", "--dir", "-O", "--output")
	if name, chosen := a.value("-p", "--pattern"); chosen && a.section.Command == "release download" && !strings.ContainsAny(name, "*?[\\") {
		a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(dir, name), Via: "-p"})
		return
	}
	if !given || path.Clean(dir) == "." {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "names that others chose"})
	}
}

// checkJqText: gh and glab bring jq along, with the variables of the environment.
func checkJqText(a *arguments) {
	for _, g := range a.given {
		if g.spelling == "-q" || g.spelling == "--jq" {
			a.jqProgram(g.value)
		}
	}
}

// brewName is a formula of Homebrew's own lists. Any other name is a file of code, or fetches somebody's list of them.
var brewName = regexp.MustCompile(`^[\w@.+-]+$`)

func checkBrewNames(a *arguments) {
	for _, word := range a.operands {
		if !brewName.MatchString(word) || strings.HasSuffix(word, ".rb") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// checkTmuxFormat: "#(x)" in a format runs x, and some formats expand others.
func checkTmuxFormat(a *arguments) {
	for _, g := range a.given {
		if strings.ContainsAny(g.value, "(") || strings.Contains(g.value, "E:") || strings.Contains(g.value, "T:") {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: g.value, Via: g.spelling})
		}
	}
}

// checkGitRemotes: a remote that is given by its address is talked to as in a fetch.
func checkGitRemotes(a *arguments) {
	for _, word := range a.operands {
		a.gitRemote(word, shell.Reads)
	}
}

// checkArchiveFormat: any other format is a command of the configuration.
func checkArchiveFormat(a *arguments) {
	if format, ok := a.value("--format"); ok && !slices.Contains([]string{"tar", "zip", "tgz", "tar.gz"}, format) {
		a.does(shell.Effect{Kind: shell.Unknown, Text: format, Via: "--format"})
	}
}
