package protected

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxGitFile is how much of one of git's files is read. What is longer may say anything.
const maxGitFile = 64 << 10

// runs reports whether git on the machine would run something because of a protected entry, as it is now. What "git init"
// and "git clone" make runs nothing; in doubt it does.
func (w *walker) runs(n *node, dir *os.File, name, inside string, at fileState) bool {
	if !n.isGit() {
		return name == ".git" && !w.pointsToOwn(dir, inside)
	}
	switch name {
	case ".git":
		return !w.pointsToOwn(dir, inside)
	case "modules", "worktrees": // no directory: it leads to repositories that nobody looks at
		return true
	case "hooks":
		return !at.kind.IsDir() || !onlySamples(dir)
	case "config", "config.worktree":
		content, err := readBelow(dir, name, maxGitFile+1)
		return err != nil || len(content) > maxGitFile || !harmlessGitConfig(string(content), n.inGit)
	case "commondir": // a worktree has one, which leads to the repository above it
		content, err := readBelow(dir, name, maxGitFile)
		return !n.inGit || err != nil || strings.TrimRight(string(content), "\n") != "../.."
	}
	return false
}

// pointsToOwn reports whether the file .git of a directory names a repository that the survey sees for itself: below .git/modules or
// .git/worktrees of the same mount, and by no link, which could lead to a repository that only looks like one of those.
func (w *walker) pointsToOwn(dir *os.File, inside string) bool {
	content, err := readBelow(dir, ".git", maxGitFile)
	to, isLink := strings.CutPrefix(strings.TrimRight(string(content), "\n"), "gitdir: ")
	if err != nil || !isLink {
		return false
	}
	if !path.IsAbs(to) {
		// After a name, ".." would be taken where a link leads.
		up := to
		for strings.HasPrefix(up, "../") {
			up = up[len("../"):]
		}
		if slices.Contains(strings.Split(up, "/"), "..") {
			return false
		}
		to = path.Join(inside, to)
	} else if rel, below := strings.CutPrefix(to, w.top.mount.Source+"/"); below {
		to = w.top.mount.Target + "/" + rel
	} else if _, err := os.Lstat(w.top.mount.Target); w.top.mount.Source != w.top.mount.Target && !os.IsNotExist(err) {
		return false // on the machine it is something else
	}
	rel, below := strings.CutPrefix(to, w.top.mount.Target+"/")
	return below && path.Clean(to) == to && ownRepository.MatchString(rel) && leadsBelow(w.top.dir, rel)
}

var ownRepository = regexp.MustCompile(`(?:^|/)\.git/(?:modules|worktrees)/[^/]`)

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
		"autocrlf", "eol", "abbrev", "quotepath", "safecrlf", "sparsecheckout", "sparsecheckoutcone", "untrackedcache", "whitespace",
	},
	"remote":     {"url", "pushurl", "fetch", "tagopt", "prune", "mirror", "promisor", "partialclonefilter", "skipfetchall"},
	"branch":     {"remote", "merge", "rebase", "pushremote", "description"},
	"submodule":  {"url", "active", "branch"},
	"user":       {"name", "email"},
	"extensions": {"objectformat", "partialclone", "refstorage", "worktreeconfig", "relativeworktrees"},
	"init":       {"defaultbranch"},
	"pull":       {"rebase", "ff"},
	"push":       {"default", "autosetupremote"},
	"fetch":      {"prune"},
	"gc":         {"auto"},
	"rebase":     {"autosquash", "autostash", "updaterefs"},
	"rerere":     {"enabled", "autoupdate"},
	"color":      {"ui"},
	"index":      {"version", "sparse"},
}

var gitSection = regexp.MustCompile(`^\[([A-Za-z0-9-]+)(?:[ \t]+"[^"\\]*")?\][ \t]*`)

// harmlessGitConfig reports whether nothing in a configuration of git runs a program, or reads more of it elsewhere. A
// form that git does not write itself is none that this understands. A submodule's says where its files are.
func harmlessGitConfig(text string, submodule bool) bool {
	harmless := true
	eachSetting(text, func(section, _, line string) { harmless = harmless && harmlessSetting(section, line, submodule) })
	return harmless
}

// harmlessPart is what of a configuration runs nothing.
func harmlessPart(text string) string {
	var kept strings.Builder
	last := ""
	eachSetting(text, func(section, header, line string) {
		if !harmlessSetting(section, line, false) {
			return
		}
		if header != last {
			kept.WriteString(header + "\n")
			last = header
		}
		kept.WriteString("\t" + line + "\n")
	})
	return kept.String()
}

// eachSetting takes a configuration apart: each line with a setting, and the section that it is in.
func eachSetting(text string, found func(section, header, line string)) {
	section, header := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if begins := gitSection.FindStringSubmatch(line); begins != nil {
			section, header, line = strings.ToLower(begins[1]), strings.TrimSpace(begins[0]), line[len(begins[0]):]
		}
		if line != "" && line[0] != '#' && line[0] != ';' {
			found(section, header, line)
		}
	}
}

// harmlessSetting reports whether one line of a configuration runs nothing.
func harmlessSetting(section, line string, submodule bool) bool {
	key, value, _ := strings.Cut(line, "=")
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
	own := submodule && section == "core" && key == "worktree" && strings.HasPrefix(value, "../")
	if strings.HasSuffix(line, `\`) || !own && !slices.Contains(harmlessGit[section], key) {
		return false
	}
	// "ext::sh -c …" is an address that git runs, "--upload-pack=…" one that is an option.
	return !strings.HasSuffix(key, "url") || !strings.Contains(value, "::") && !strings.HasPrefix(strings.Trim(value, `"`), "-")
}
