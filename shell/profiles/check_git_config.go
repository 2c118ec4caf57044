package profiles

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// harmlessSettings are the keys of git's configuration that change only what is shown, or what its own commands do in
// the repository. A key that ends in "." stands for a section, whatever the name of its key. Keys that name programs,
// files, addresses or other keys are not among them, and neither is what is not known.
var harmlessSettings = strings.Fields(`
	user.name user.email user.useconfigonly author.name author.email committer.name committer.email
	color. advice. column. status. commitgraph. pack. index. rerere.
	core.quotepath core.abbrev core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.precomposeunicode
	core.longpaths core.compression core.bigfilethreshold core.preloadindex core.untrackedcache core.logallrefupdates
	core.commentchar core.whitespace core.symlinks core.splitindex core.commitgraph core.multipackindex
	log.date log.decorate log.abbrevcommit log.follow log.showroot log.graphcolors log.showsignature log.mailmap
	diff.algorithm diff.renames diff.renamelimit diff.colormoved diff.colormovedws diff.context diff.interhunkcontext
	diff.mnemonicprefix diff.noprefix diff.submodule diff.statgraphwidth diff.wserrorhighlight diff.indentheuristic
	diff.autorefreshindex diff.wordregex diff.ignoresubmodules diff.relative diff.suppressblankempty diff.dirstat
	merge.conflictstyle merge.ff merge.renames merge.renamelimit merge.stat merge.log merge.verbosity merge.autostash
	merge.directoryrenames merge.branchdesc
	pull.rebase pull.ff push.default push.autosetupremote push.followtags fetch.parallel fetch.prune fetch.prunetags
	fetch.showforcedupdates fetch.writecommitgraph fetch.output
	rebase.autosquash rebase.autostash rebase.stat rebase.updaterefs rebase.missingcommitscheck rebase.abbreviatecommands
	commit.cleanup commit.status commit.verbose branch.sort branch.autosetupmerge branch.autosetuprebase tag.sort
	init.defaultbranch checkout.guess checkout.defaultremote checkout.workers stash.showpatch stash.showstat
	stash.showincludeuntracked blame.coloring blame.date blame.blankboundary blame.showemail blame.showroot
	grep.linenumber grep.column grep.patterntype grep.extendedregexp grep.fullname grep.threads grep.fallbacktonoindex
	format.pretty format.signoff format.numbered format.coverletter format.thread format.useautobase
	gc.auto gc.autodetach gc.autopacklimit maintenance.auto protocol.version
	http.lowspeedlimit http.lowspeedtime http.postbuffer http.version http.maxrequests feature.manyfiles
	feature.experimental submodule.fetchjobs versionsort.suffix i18n.logoutputencoding
	i18n.commitencoding`)

// harmlessValues are values of other keys that start nothing.
var harmlessValues = map[string][]string{
	"core.editor":             {"true", ":", "cat"},
	"sequence.editor":         {"true", ":", "cat"},
	"core.pager":              {"cat", ""},
	"core.fsmonitor":          {"false", "", "0"},
	"commit.gpgsign":          {"false", "0", "no"},
	"tag.gpgsign":             {"false", "0", "no"},
	"push.gpgsign":            {"false", "0", "no"},
	"credential.helper":       {""},
	"submodule.recurse":       {"false"},
	"fetch.recursesubmodules": {"false", "no"},
}

// harmlessSetting reports whether a setting of git's starts nothing, whatever command it is for.
func harmlessSetting(key, value string) bool {
	key = strings.ToLower(key)
	section, _, _ := strings.Cut(key, ".")
	switch {
	case slices.Contains(harmlessValues[key], value):
		return true
	case slices.Contains(harmlessSettings, key):
		return true
	}
	return strings.Count(key, ".") == 1 && slices.Contains(harmlessSettings, section+".")
}

// checkGitSettings looks at -c NAME=VALUE. Many settings name programs: pagers, editors, filters, hooks, aliases.
func checkGitSettings(a *arguments) {
	for _, g := range a.given {
		if g.spelling != "-c" && g.spelling != "--config" {
			continue
		}
		key, value, has := strings.Cut(g.value, "=")
		if !has {
			value = "true"
		}
		if !harmlessSetting(key, value) {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: g.value, Via: g.spelling})
		}
	}
}

// checkGitConfig tells reading from changing: git config KEY reads, git config KEY VALUE changes what git does from
// then on.
func checkGitConfig(a *arguments) {
	file, hasFile := a.value("-f", "--file")
	edits := slices.ContainsFunc([]string{
		"-e", "--edit", "--replace-all", "--add", "--append", "--unset", "--unset-all", "--rename-section", "--remove-section",
	}, a.has)
	if !edits && a.readsSettings() {
		if !hasFile {
			file = "."
		}
		a.does(shell.Effect{Kind: shell.Reads, Path: file})
		return
	}
	words := a.operands
	if len(words) > 0 && words[0] == "set" {
		words = words[1:]
	}
	shared := a.has("--global") || a.has("--system") || hasFile
	if !shared && !edits && len(words) == 2 && harmlessSetting(words[0], words[1]) {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
		return
	}
	a.does(shell.Effect{Kind: shell.Configures, Via: strings.Join(words, " ")})
	if hasFile {
		a.does(shell.Effect{Kind: shell.Writes, Path: file})
	}
}

// readsSettings reports whether git config only shows settings.
func (a *arguments) readsSettings() bool {
	if slices.ContainsFunc([]string{
		"-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--get-color", "--get-colorbool",
	}, a.has) {
		return true
	}
	if len(a.operands) == 0 {
		return true
	}
	switch a.operands[0] {
	case "get", "list":
		return true
	case "set", "unset", "edit", "rename-section", "remove-section":
		return false
	}
	return len(a.operands) == 1
}
