package profiles

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkDate looks for a date that is set: the one operand of date that is no format.
func checkDate(a *arguments) {
	if a.has("-j") { // BSD: only convert
		return
	}
	for _, word := range a.operands {
		if !strings.HasPrefix(word, "+") {
			a.does(shell.Effect{Kind: shell.Configures, Via: word})
		}
	}
}

// The options of ps: long ones; letters that are options after a dash; letters that are options without one; letters of
// both kinds that have a value.
var psLong = strings.Fields(`--cols --columns --width --rows --lines --headers --no-headers --no-heading --forest --pid --ppid
	--quick-pid --sort --user --User --group --Group --tty --sid --format --deselect --cumulative --context --help --info
	--version --heading`)

const (
	psDashed = "AaNdefFjlLMPTyZHcmwV"
	psBare   = "acefghjlmnrsuvwxAEHLSTVXZ" // E: the environment, where e is every process
	psValues = "CGgopqstUukO"

	psBareValues = "UtpqkOo" // not u: the e of "ps ue" is a letter of its own
)

// checkPS looks for the ways in which ps shows the environment of processes, where secrets are: "ps auxe" does, while
// "ps -ef" does not. But words after a dash that make no sense there are read again as if they had none.
func checkPS(a *arguments) {
	dashed, bare, again, previous := false, false, false, ""
	for _, word := range a.operands {
		isValue := strings.HasPrefix(previous, "-") && strings.ContainsAny(previous[len(previous)-1:], "oCp")
		previous = word
		long, _, _ := strings.Cut(word, "=")
		options, isDashed := strings.CutPrefix(word, "-")
		values := psBareValues
		if isDashed {
			values = psValues
		}
		if i := strings.IndexAny(options, values); i >= 0 {
			rest := options[i+1:]
			options = options[:i]
			if isDashed && rest != "" && consistsOf(rest, psBare) {
				options, again = options+rest, true
			}
		}
		hasE := strings.ContainsAny(options, "eE")
		switch {
		case strings.Contains(word, "env"):
			bare = true // a column
		case strings.HasPrefix(word, "--"):
			if !slices.Contains(psLong, long) {
				a.does(shell.Effect{Kind: shell.Unknown, Via: word})
			}
		case isDashed:
			dashed = dashed || hasE
			again = again || !consistsOf(options, psDashed)
		case !isValue && options != "" && consistsOf(options, psBare):
			bare = bare || hasE
			again = true
		}
	}
	if bare || dashed && again {
		a.does(shell.Effect{Kind: shell.Environment})
	}
}

// checkTop looks at the words behind a container, which "docker top" gives to ps.
func checkTop(a *arguments) {
	all := a.operands
	if len(all) > 1 {
		a.operands = all[1:]
		checkPS(a)
		a.operands = all
	}
}

// consistsOf reports whether a text has no other characters than these.
func consistsOf(text, characters string) bool { return strings.Trim(text, characters) == "" }
