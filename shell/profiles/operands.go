package profiles

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// conclude says what the operands are.
func (a *arguments) conclude() {
	roles := a.roles()
	for _, v := range a.section.Else {
		if slices.ContainsFunc(v.Options, a.has) {
			roles = v.Operands
		}
	}
	if len(a.operands) == 0 {
		for _, e := range a.section.Default {
			a.does(e)
		}
	}
	a.assign(roles)
	a.finish()
}

// finish adds what the section does by itself.
func (a *arguments) finish() {
	for _, e := range a.section.Does {
		a.does(e)
	}
	for _, name := range a.section.Checks {
		checks[name](a)
	}
	a.follow()
}

// follow marks what is reached through symbolic links, if an option says that they are followed.
func (a *arguments) follow() {
	for _, kind := range []shell.Kind{shell.Reads, shell.Writes} {
		if !slices.ContainsFunc(a.given, func(g given) bool { return g.option.Follows == kind }) {
			continue
		}
		for i := range a.effects {
			if a.effects[i].Kind == kind {
				a.effects[i].Far = true
			}
		}
	}
}

// has reports whether an option was given.
func (a *arguments) has(spelling string) bool {
	return slices.ContainsFunc(a.given, func(g given) bool { return g.spelling == spelling })
}

// value returns the last value that was given to one of the options.
func (a *arguments) value(spellings ...string) (value string, ok bool) {
	for _, g := range a.given {
		if g.attached && slices.Contains(spellings, g.spelling) {
			value, ok = g.value, true
		}
	}
	return value, ok
}

// assign gives roles to operands: those before the one that stands for any number from the front, those after it from
// the back. Operands without a role are not understood.
func (a *arguments) assign(roles []Role) {
	words := a.operands
	at := slices.IndexFunc(roles, func(r Role) bool { return r.Many })
	var many *Role
	before, after := roles, []Role(nil)
	if at >= 0 {
		many, before, after = &roles[at], roles[:at], roles[at+1:]
	}
	for _, r := range before {
		if len(words) == 0 || r.Maybe && len(words) <= len(after) {
			break
		}
		if r.Name == "runs" {
			a.does(shell.Effect{Kind: shell.Runs, Argv: slices.Clone(words)})
			return
		}
		a.word(r, words[0], "")
		words = words[1:]
	}
	tail := max(0, len(words)-len(after))
	for i, word := range words[tail:] {
		a.word(after[i], word, "")
	}
	for _, word := range words[:tail] {
		if many == nil {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
			continue
		}
		a.word(*many, word, "")
	}
}

// word says what a word in a role does.
func (a *arguments) word(r Role, word, via string) {
	switch r.Name {
	case "text", "args":
	case "package":
		if word != "" && !ownPackage(word) {
			a.does(shell.Effect{Kind: shell.Installs, Text: word, Via: via})
		}
	case "script":
		switch {
		case word == "-":
			a.does(shell.Effect{Kind: shell.Evaluates, Via: strings.TrimSpace(via + " standard input")})
			return
		case schemeOf(word) != "": // fetched, and run at once
			a.does(shell.Effect{Kind: shell.Network, Via: via})
			a.does(shell.Effect{Kind: shell.Unknown, Text: word, Via: via})
			return
		}
		// Where the code lies decides whose it is: a script outside the project is not the project's.
		a.does(shell.Effect{Kind: shell.Project, Via: via})
		a.does(shell.Effect{Kind: shell.Enters, Path: word, Via: via})
	case "obeys":
		if schemeOf(word) != "" {
			a.does(shell.Effect{Kind: shell.Unknown, Text: word, Via: via})
			return
		}
		a.does(shell.Effect{Kind: shell.Enters, Path: word, Via: via})
	case "reads", "writes":
		if strings.Contains(word, "://") { // no file: a program that takes addresses talks to whom it is told
			e := urlEffect(word, via)
			e.Remote = word
			a.does(e)
		}
		if word != "-" { // the standard streams
			a.does(shell.Effect{Kind: shell.Kind(r.Name), Path: word, Via: via})
		}
	case "report":
		a.reports(word, via)
	case "ref":
		// "--output=x" would be an option of git that writes a file, and `$(x)` a command.
		if strings.HasPrefix(word, "-") || !plainRef.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: word, Via: via})
		}
	case "revision":
		if file := revisionPath(word); file != "" {
			a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: via})
		}
	case "enters":
		a.does(shell.Effect{Kind: shell.Enters, Path: word, Via: via})
		if len(a.dir) > maxDirectory {
			a.does(shell.Effect{Kind: shell.Unknown, Via: via})
		} else if path.IsAbs(word) {
			a.dir = word
		} else {
			a.dir = path.Join(a.dir, word)
		}
	case "url":
		a.does(urlEffect(word, via))
	case "host":
		_, host, found := strings.Cut(word, "@")
		if !found {
			host = word
		}
		a.does(shell.Effect{Kind: shell.Network, Host: host, Via: via})
	case "program":
		a.does(shell.Effect{Kind: shell.Evaluates, Text: word, Lang: r.Lang, Via: via})
	default:
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.TrimSpace(via + " " + word)})
	}
}

// plainRef is a revision, a range of them, or letters of a filter.
var plainRef = regexp.MustCompile(`^[\w./@^~{}:*+-]+$`)

// reports says what is written where a value names kinds of reports with the files that they go to: "json:out.json,text",
// "asm=out.s". Taken for plain text, that would write any file.
func (a *arguments) reports(value, via string) {
	for part := range strings.SplitSeq(value, ",") {
		if at := strings.IndexAny(part, ":="); at >= 0 && part[at+1:] != "-" {
			a.does(shell.Effect{Kind: shell.Writes, Path: part[at+1:], Via: via})
		}
	}
}

// ownPackage reports whether a package is the project itself, or all that it needs already: ".", ".[dev]", "./...".
func ownPackage(word string) bool {
	word, _, _ = strings.Cut(word, "[")
	return word == "." || strings.HasPrefix(word, "./") || word == "all"
}

// schemeOf returns the scheme of an address such as "https://x", "npm:x" or "data:x"; "" if it is a path.
func schemeOf(word string) string {
	scheme, _, found := strings.Cut(word, ":")
	if !found || len(scheme) < 2 || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" {
		return ""
	}
	return scheme
}

// plainHost is a host that all programs read the same way: a name or an address, perhaps with a port. In
// "http://a\@b" and its like programs and parsers disagree about which host is meant.
var plainHost = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?$`)

// urlEffect says what an address is. Only those of the web are talked to in a way that is known.
func urlEffect(text, via string) shell.Effect {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", strings.ContainsAny(full, "\\ "),
		!plainHost.MatchString(u.Host), strings.HasPrefix(u.Host, "-"), strings.Count(authority(full), "@") > 1:
		return shell.Effect{Kind: shell.Unknown, Text: text, Via: via}
	}
	return shell.Effect{Kind: shell.Network, Host: u.Host, Via: via}
}

// mostEffects bounds what is told of one command: nobody reads more, and each costs time.
const mostEffects = 2000

// does adds an effect. Relative paths are below the directory that the arguments have named so far. What is beyond the
// bound is unknown.
func (a *arguments) does(e shell.Effect) {
	if len(a.effects) >= mostEffects {
		if len(a.effects) == mostEffects {
			a.effects = append(a.effects, shell.Effect{Kind: shell.Unknown, Via: "more than anybody reads"})
		}
		return
	}
	if e.Path != "" && !path.IsAbs(e.Path) {
		e.Dir = a.dir
	}
	a.effects = append(a.effects, e)
}
