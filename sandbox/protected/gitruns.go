package protected

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// maxGitFile is how much of one of git's files is read. What is longer may say anything.
const maxGitFile = 64 << 10

// runs reports whether git on the machine would run something because of a protected entry, as it is now. What "git init"
// and "git clone" make runs nothing; in doubt it does.
func (n *node) runs(dir *os.File, name string, at fileState) bool {
	if n.name != ".git" && !n.inGit {
		return name == ".git" && !pointsToOwn(dir)
	}
	switch name {
	case "hooks":
		return !at.kind.IsDir() || !onlySamples(dir)
	case "config", "config.worktree":
		content, err := readBelow(dir, name, maxGitFile+1)
		return err != nil || len(content) > maxGitFile || !harmlessGitConfig(string(content), n.inGit)
	case "commondir":
		return !n.inGit // a worktree has one
	}
	return false
}

// pointsToOwn reports whether the file .git of a directory names a repository that the survey sees for itself.
func pointsToOwn(dir *os.File) bool {
	content, err := readBelow(dir, ".git", maxGitFile)
	return err == nil && strings.HasPrefix(string(content), "gitdir: ") &&
		(strings.Contains(string(content), "/.git/modules/") || strings.Contains(string(content), "/.git/worktrees/")) ||
		err == nil && (strings.HasPrefix(string(content), "gitdir: .git/modules/") || strings.HasPrefix(string(content), "gitdir: .git/worktrees/"))
}

// onlySamples reports whether a directory of hooks has none that git would run.
func onlySamples(dir *os.File) bool {
	hooks, err := openBelow(dir, "hooks")
	if err != nil {
		return false
	}
	defer hooks.Close()
	entries, err := hooks.ReadDir(-1)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") })
}

// harmlessGit are the keys that git itself writes when a repository is made, cloned or given a remote. None of them names
// a program or another file.
var harmlessGit = map[string][]string{
	"core": {
		"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
		"autocrlf", "eol",
	},
	"remote":     {"url", "pushurl", "fetch", "tagopt", "prune", "mirror", "promisor", "partialclonefilter", "skipfetchall"},
	"branch":     {"remote", "merge", "rebase", "pushremote", "description"},
	"submodule":  {"url", "active", "branch"},
	"user":       {"name", "email"},
	"extensions": {"objectformat", "partialclone", "refstorage"},
	"init":       {"defaultbranch"},
	"pull":       {"rebase", "ff"},
	"push":       {"default", "autosetupremote"},
	"fetch":      {"prune"},
	"gc":         {"auto"},
}

var gitSection = regexp.MustCompile(`^\[([A-Za-z0-9-]+)(?:[ \t]+"[^"\\]*")?\][ \t]*`)

// harmlessGitConfig reports whether nothing in a configuration of git runs a program, or reads more of it elsewhere. A
// form that git does not write itself is none that this understands. A submodule's says where its files are.
func harmlessGitConfig(text string, submodule bool) bool {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if header := gitSection.FindStringSubmatch(line); header != nil {
			section, line = strings.ToLower(header[1]), line[len(header[0]):]
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		own := submodule && section == "core" && key == "worktree" && strings.HasPrefix(value, "../")
		if strings.HasSuffix(line, `\`) || !own && !slices.Contains(harmlessGit[section], key) {
			return false
		}
		// "ext::sh -c …" is an address that git runs, "--upload-pack=…" one that is an option.
		if strings.HasSuffix(key, "url") && (strings.Contains(value, "::") || strings.HasPrefix(strings.Trim(value, `"`), "-")) {
			return false
		}
	}
	return true
}
