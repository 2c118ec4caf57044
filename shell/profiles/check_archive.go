package profiles

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// maxTarDirectories is how many directories tar may work in, one after the other. Each operand may lie in each.
const maxTarDirectories = 16

// checkTar says what tar does with its archive and its operands: that depends on whether it packs or unpacks.
func checkTar(a *arguments) {
	has := func(options ...string) bool { return slices.ContainsFunc(options, a.has) }
	create := has("-c", "--create")
	change := has("-r", "--append", "-u", "--update", "-A", "--catenate", "--concatenate", "--delete")
	extract := has("-x", "--extract", "--get")
	look := has("-t", "--list", "-d", "--diff", "--compare", "--test-label")
	if !create && !change && !extract && !look && len(a.operands) > 0 {
		a.does(shell.Effect{Kind: shell.Unknown, Via: a.operands[0]})
	}
	// These mean something else to other tars: a renaming, links that are followed, a list of files.
	for _, option := range []string{"-s", "-L", "-H", "-K", "-W"} {
		if a.has(option) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: option})
		}
	}
	dirs := a.tarDirectories()
	if len(dirs) > maxTarDirectories {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-C"})
		return
	}
	for _, g := range a.given {
		a.tarOption(g, create || change, extract)
	}
	switch {
	case extract && has("-P", "--absolute-names"):
		a.does(shell.Effect{Kind: shell.Writes, Path: "/", Via: "-P"})
	case extract && !has("-O", "--to-stdout"):
		for _, dir := range dirs {
			a.below(shell.Writes, dir, ".")
		}
	}
	if !create && !change && !has("-d", "--diff", "--compare") {
		return
	}
	for _, word := range a.operands {
		for _, dir := range dirs {
			a.below(shell.Reads, dir, strings.TrimPrefix(word, "@")) // bsdtar: the contents of an archive
			if a.has("--remove-files") {
				a.below(shell.Writes, dir, word)
			}
		}
	}
}

// below adds an effect in a directory that is not the last that the arguments named.
func (a *arguments) below(kind shell.Kind, dir, name string) {
	e := shell.Effect{Kind: kind, Path: name}
	if !path.IsAbs(name) {
		e.Dir = dir
	}
	a.effects = append(a.effects, e)
}

// tarDirectories lists the directories that tar works in, one after the other. Files that are named before the first
// -C lie in its own.
func (a *arguments) tarDirectories() []string {
	dirs := []string{""}
	for _, g := range a.given {
		if g.spelling != "-C" && g.spelling != "--directory" {
			continue
		}
		if len(dirs) > maxTarDirectories {
			return dirs
		}
		if path.IsAbs(g.value) {
			dirs = append(dirs, g.value)
		} else {
			dirs = append(dirs, path.Join(dirs[len(dirs)-1], g.value))
		}
	}
	if len(dirs) > 1 && a.has("-x") || len(dirs) > 1 && len(a.operands) == 0 {
		return dirs[1:]
	}
	return dirs
}

// tarOption says what options with a value do.
func (a *arguments) tarOption(g given, writes, extract bool) {
	switch g.spelling {
	case "-f", "--file":
		host, _, remote := strings.Cut(g.value, ":")
		switch {
		case g.value == "-":
		case remote && !strings.Contains(host, "/") && !a.has("--force-local"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value}) // runs rsh or ssh
		case writes:
			a.below(shell.Writes, "", g.value)
		default:
			a.below(shell.Reads, "", g.value)
		}
	case "-I", "--use-compress-program":
		words := strings.Fields(g.value)
		if len(words) == 0 || strings.ContainsAny(g.value, "\"'\\$`;&|<>()*?[]{}~!#\n") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
			return
		}
		a.does(shell.Effect{Kind: shell.Runs, Argv: words, Open: true, Via: g.spelling})
	case "--checkpoint-action":
		action, command, _ := strings.Cut(g.value, "=")
		switch action {
		case ".", "dot", "bell", "echo", "ttyout", "sleep", "totals", "wait":
		case "exec":
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: command, Via: g.spelling})
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	case "--transform", "--xform":
		if extract { // where files land is not seen
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	}
}

// checkZip adds the name that zip makes of one without an end.
func checkZip(a *arguments) {
	recursive := slices.ContainsFunc([]string{"-r", "-R", "--recurse-paths"}, a.has)
	if recursive && !a.has("-y") && !a.has("--symlinks") { // zip packs what links lead to
		for i := range a.effects {
			a.effects[i].Far = a.effects[i].Far || a.effects[i].Kind == shell.Reads
		}
	}
	if len(a.operands) == 0 {
		return
	}
	if archive := a.operands[0]; archive != "-" && !strings.Contains(path.Base(archive), ".") {
		a.does(shell.Effect{Kind: shell.Writes, Path: archive + ".zip"})
	}
}

// checkUnzip says where unzip writes.
func checkUnzip(a *arguments) {
	if a.has("-T") && len(a.operands) > 0 {
		a.does(shell.Effect{Kind: shell.Writes, Path: a.operands[0], Via: "-T"})
	}
	if len(a.operands) == 0 || slices.ContainsFunc([]string{"-l", "-t", "-v", "-z", "-Z", "-p", "-c"}, a.has) {
		return
	}
	dir, ok := a.value("-d")
	if !ok {
		dir = "."
	}
	a.does(shell.Effect{Kind: shell.Writes, Path: dir})
}

// check7z reads the arguments of 7z: a command, switches and names.
func check7z(a *arguments) {
	command, dir, names := "", ".", []string(nil)
	for i, word := range a.operands {
		letter, value := "", ""
		if strings.HasPrefix(word, "-") && len(word) > 1 {
			letter, value = strings.ToLower(word[1:2]), word[2:]
		}
		switch {
		case i == 0:
			command = word
		case strings.Contains(word, "@"): // the names stand in a file
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case letter == "":
			names = append(names, word)
		case word == "-y", word == "-bd", word == "-bb", word == "-ba", word == "-slt", word == "-so", word == "-si", word == "-ssc",
			letter == "p", letter == "m", letter == "t", letter == "a", letter == "x", strings.HasPrefix(word, "-bs"),
			word == "-r", word == "-r-", word == "-r0":
		case letter == "o":
			dir = value
		default:
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
	a.sevenZipCommand(command, dir, names)
}

func (a *arguments) sevenZipCommand(command, dir string, names []string) {
	archive := shell.Effect{Kind: shell.Reads}
	switch command {
	case "", "i", "b", "h", "--help":
		if len(names) == 0 {
			return
		}
	case "l", "t":
	case "x", "e":
		a.does(shell.Effect{Kind: shell.Writes, Path: dir})
	case "a", "u", "d", "rn":
		archive.Kind = shell.Writes
	default:
		a.does(shell.Effect{Kind: shell.Unknown, Via: command})
	}
	for i, name := range names {
		switch {
		case i == 0:
			archive.Path = name
			a.does(archive)
		case archive.Kind == shell.Writes:
			a.does(shell.Effect{Kind: shell.Reads, Path: name, Far: true}) // it packs what links lead to
		}
	}
}

// checkAr says what ar does with its archive and its members.
func checkAr(a *arguments) {
	has := func(options ...string) bool { return slices.ContainsFunc(options, a.has) }
	if has("-a", "-b", "-i", "-N") { // one more operand before the archive
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-a"})
	}
	change := has("-r", "-q", "-d", "-m", "-s")
	for i, word := range a.operands {
		switch {
		case strings.HasPrefix(word, "@"): // the arguments stand in a file
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case i == 0 && change:
			a.does(shell.Effect{Kind: shell.Writes, Path: word})
		case i == 0:
			a.does(shell.Effect{Kind: shell.Reads, Path: word})
		case change:
			a.does(shell.Effect{Kind: shell.Reads, Path: word})
		}
	}
	if a.has("-x") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
}

// checkManual finds pages that are named as files.
func checkManual(a *arguments) {
	for _, word := range a.operands {
		if strings.Contains(word, "/") {
			a.does(shell.Effect{Kind: shell.Reads, Path: word})
		}
	}
}
