package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// plainRevision is what names a revision and is not taken for the name of a file.
var plainRevision = regexp.MustCompile(`^\^?(HEAD|@|FETCH_HEAD|ORIG_HEAD|MERGE_HEAD|CHERRY_PICK_HEAD|REBASE_HEAD|stash|[0-9a-f]{7,40})?` +
	`(@\{[A-Za-z0-9 .:-]*\})?([~^][0-9]*|\^\{[a-z]*\})*$`)

// revisionPath returns the path that a word names which may be a revision or a path of git; "" if it is a revision for
// sure. git diff reads any two files of the machine if they are not in the repository, so that in doubt it is a path.
func revisionPath(word string) string {
	if rev, file, found := strings.Cut(word, ":"); found && !strings.Contains(rev, "/..") && !strings.HasPrefix(rev, ".") {
		if rev != "" && !strings.HasPrefix(word, "/") {
			return strings.TrimSpace(file) // HEAD:file
		}
		return pathspec(word)
	}
	from, to, found := strings.Cut(strings.Replace(word, "...", "..", 1), "..")
	if plainRevision.MatchString(from) && (!found || plainRevision.MatchString(to)) {
		return ""
	}
	return word
}

// pathspec takes the magic off a path as git writes it: ":/top", ":!not", ":(top,icase)path", ":0:staged".
func pathspec(word string) string {
	if !strings.HasPrefix(word, ":") {
		return word
	}
	if rest, magic := strings.CutPrefix(word, ":("); magic {
		_, file, _ := strings.Cut(rest, ")")
		return file
	}
	return strings.TrimLeft(word, ":/!^0123456789")
}

// wholeTree reports whether a pathspec stands for more than what it names: everything in a directory, or what is
// only known when it is looked up.
func wholeTree(word string) bool {
	if strings.HasPrefix(word, ":") || strings.ContainsAny(word, "*?[") {
		return true
	}
	return strings.Trim(word, "./") == ""
}

// checkGitCheckout tells paths from branches. Changes to a path are lost; they are told as a write of that path, as
// if it were copied over, but for those of the whole tree.
func checkGitCheckout(a *arguments) {
	words := a.operands
	if a.plain >= 0 {
		words = words[a.plain:]
	} else if a.has("-b") || a.has("-B") || a.has("--orphan") || a.has("-d") || a.has("--detach") {
		return
	}
	a.overwrites(words)
}

func checkGitRestore(a *arguments) {
	if (a.has("--staged") || a.has("-S")) && !a.has("--worktree") && !a.has("-W") {
		return
	}
	a.overwrites(a.operands)
}

// overwrites says that what has changed in paths is lost.
func (a *arguments) overwrites(words []string) {
	for _, word := range words {
		switch {
		case wholeTree(word):
			a.does(shell.Effect{Kind: shell.Destroys, Path: ".", Via: word})
		case revisionPath(word) != "":
			a.does(shell.Effect{Kind: shell.Writes, Path: word})
		}
	}
}

// checkGitNames: git branch and git tag list names if they are given none, or asked for a list.
func checkGitNames(a *arguments) {
	changes := slices.ContainsFunc([]string{
		"-d", "-D", "-m", "-M", "-c", "-C", "-u", "-f", "--delete", "--move", "--copy", "--force", "--set-upstream-to",
		"--unset-upstream", "--edit-description", "-a", "-s", "-F", "--annotate", "--sign", "--message", "--file", "--local-user",
	}, func(option string) bool { return a.has(option) && (option != "-a" || a.section.Command == "tag") })
	lists := len(a.operands) == 0 || slices.ContainsFunc([]string{
		"-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--show-current", "-n", "-v", "--verify",
	}, func(option string) bool { return a.has(option) && (option != "-v" || a.section.Command == "tag") })
	if changes || !lists {
		a.gitWrites()
	}
}

func checkGitSymbolicRef(a *arguments) {
	if len(a.operands) > 1 || a.has("-d") || a.has("--delete") {
		a.gitWrites()
	}
}

// gitWrites says that the repository is changed, which may run hooks.
func (a *arguments) gitWrites() {
	a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	a.does(shell.Effect{Kind: shell.Project})
}

// checkGitClean: files that git does not know have no copy.
func checkGitClean(a *arguments) {
	if a.has("-n") || a.has("--dry-run") {
		a.does(shell.Effect{Kind: shell.Reads, Path: "."})
		return
	}
	if len(a.operands) == 0 {
		a.does(shell.Effect{Kind: shell.Destroys, Path: "."})
	}
	for _, word := range a.operands {
		a.does(shell.Effect{Kind: shell.Destroys, Path: pathspec(word)})
	}
}

// gitStrategies come with git. Another name starts the program git-merge-NAME.
var gitStrategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

func checkGitStrategy(a *arguments) {
	for _, g := range a.given {
		isStrategy := g.spelling == "--strategy" || g.spelling == "-s" && g.attached
		if isStrategy && !slices.Contains(gitStrategies, g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	}
}

// checkGitFetch looks at where it is fetched from, and at branches of the same name that would be lost.
func checkGitFetch(a *arguments) {
	if len(a.operands) == 0 {
		a.does(shell.Effect{Kind: shell.Network})
		return
	}
	repositories, refs := a.operands[:1], a.operands[1:]
	if a.has("--multiple") || a.has("-m") {
		repositories, refs = a.operands, nil
	}
	for _, r := range repositories {
		a.gitRemote(r, shell.Reads)
	}
	for _, ref := range refs {
		_, to, renamed := strings.Cut(ref, ":")
		forced := strings.HasPrefix(ref, "+") || a.has("-f") || a.has("--force")
		if renamed && forced && to != "" && !strings.HasPrefix(to, "refs/remotes/") {
			a.does(shell.Effect{Kind: shell.Destroys, Via: ref})
		}
	}
}

// checkGitPush looks at where it is pushed to, and at what is lost there: "+ref" forces, ":ref" removes.
func checkGitPush(a *arguments) {
	repository, given := a.value("--repo")
	refs := a.operands
	if len(refs) > 0 {
		repository, refs, given = refs[0], refs[1:], true
	}
	if given {
		a.gitRemote(repository, shell.Writes)
	} else {
		a.does(shell.Effect{Kind: shell.Network})
	}
	for _, ref := range refs {
		if strings.HasPrefix(ref, "+") || strings.HasPrefix(ref, ":") {
			a.does(shell.Effect{Kind: shell.Destroys, Via: ref})
		}
	}
}

// checkGitClone looks at what is cloned, and at where it goes to.
func checkGitClone(a *arguments) {
	if len(a.operands) == 0 {
		return
	}
	a.gitRemote(a.operands[0], shell.Reads)
	target := clonedInto(a.operands[0])
	if len(a.operands) > 1 {
		target = a.operands[1]
	} else if a.has("--bare") || a.has("--mirror") {
		target += ".git"
	}
	a.does(shell.Effect{Kind: shell.Writes, Path: target})
}

// clonedInto is the directory that git makes of an address: "https://h/x/.claude.git" becomes ".claude".
func clonedInto(address string) string {
	name := strings.TrimRight(address, "/")
	name = strings.TrimRight(strings.TrimSuffix(name, "/.git"), "/")
	if i := strings.LastIndexAny(name, "/:"); i >= 0 {
		name = name[i+1:]
	}
	if name = strings.TrimSuffix(strings.TrimSuffix(name, ".git"), ".bundle"); name == "" {
		return "."
	}
	return name
}

// gitRemote says what a repository is: the name of a remote, an address, or a directory. Directories have hooks and
// configuration, which are obeyed.
func (a *arguments) gitRemote(word string, kind shell.Kind) {
	scheme, rest, isURL := strings.Cut(word, "://")
	before, after, hasColon := strings.Cut(word, ":")
	switch {
	case strings.HasPrefix(word, "-"), hasColon && strings.HasPrefix(after, ":"): // transport::address starts git-remote-transport
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	case isURL && scheme == "file":
		a.gitDirectory("/"+strings.TrimLeft(rest, "/"), kind)
	case isURL && slices.Contains([]string{"http", "https", "ssh", "git", "git+ssh", "ssh+git"}, scheme):
		a.address(rest, word)
		a.effects[len(a.effects)-1].Remote = word
	case isURL:
		a.does(shell.Effect{Kind: shell.Unknown, Via: word})
	case hasColon && !strings.Contains(before, "/"): // host:path
		a.address(before, word)
		a.effects[len(a.effects)-1].Remote = word
	case strings.Contains(word, "/"), strings.HasPrefix(word, "."), strings.HasPrefix(word, "~"):
		a.gitDirectory(word, kind)
	default:
		a.does(shell.Effect{Kind: shell.Network, Via: word, Remote: word})
	}
}

func (a *arguments) gitDirectory(dir string, kind shell.Kind) {
	a.does(shell.Effect{Kind: kind, Path: dir})
	if kind == shell.Writes {
		a.does(shell.Effect{Kind: shell.Enters, Path: dir})
	}
}

// address says that the host of "user@host:port/path" is talked to. A host that begins with "-" would be an option of ssh.
func (a *arguments) address(authority, via string) {
	authority, _, _ = strings.Cut(authority, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if authority == "" || authority[0] == '-' || strings.ContainsAny(authority, "$%`\\ \t\n") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: via})
		return
	}
	a.does(shell.Effect{Kind: shell.Network, Host: authority, Via: via})
}
