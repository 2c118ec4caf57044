package command

import (
	"path"
	"strings"
)

// pattern is the compiled path of an entry.
type pattern struct {
	text  string // trimmed, "~/" replaced, literal ones cleaned
	never bool   // it is no absolute path
	all   bool   // "*"
	glob  bool
	fixed string // what stands before the first "*" or "?"
	fold  bool   // names that differ in case are the same
}

// compilePattern reads a pattern: an absolute path, or one below "~/", in which "*" is any run without "/", "**" any
// run, and "?" one character that is not "/". "*" alone is everything. Anything else never matches: a bare name would
// say yes to whatever the search path has by that name.
func compilePattern(text, home string, fold bool) pattern {
	text = strings.TrimSpace(text)
	if text == "*" {
		return pattern{text: text, all: true}
	}
	if rest, ok := strings.CutPrefix(text, "~/"); ok && home != "" {
		text = strings.TrimRight(home, "/") + "/" + rest
	}
	p := pattern{text: text, fold: fold, glob: strings.ContainsAny(text, "*?"), never: !path.IsAbs(text)}
	if !p.glob {
		p.text = path.Clean(text)
	}
	if fold {
		p.text = strings.ToLower(p.text)
	}
	if p.glob {
		p.fixed = p.text[:strings.IndexAny(p.text, "*?")]
	}
	return p
}

// matches reports whether the pattern stands for a program that was found. real gives the real path of a literal
// pattern, "" if nothing is there.
func (p *pattern) matches(prog *Program, real func(string) string) bool {
	switch {
	case p.all:
		return true
	case p.never || !prog.Found():
		return false
	case p.glob:
		// Only the real path: a link that an agent puts under an allowed directory names nothing there.
		real := p.folded(prog.Real)
		return strings.HasPrefix(real, p.fixed) && globMatch(p.text[len(p.fixed):], real[len(p.fixed):])
	}
	return p.text == p.folded(prog.Path) || p.text == p.folded(prog.Real) || p.sameFile(prog, real)
}

// sameFile compares the files behind the pattern and the program, if they have the same name: /bin/ls and /usr/bin/ls
// are one program, but the applets of busybox are not.
func (p *pattern) sameFile(prog *Program, real func(string) string) bool {
	if path.Base(p.text) != path.Base(p.folded(prog.Path)) {
		return false
	}
	target := real(p.text)
	return target != "" && p.folded(target) == p.folded(prog.Real)
}

func (p *pattern) folded(s string) string {
	if p.fold {
		return strings.ToLower(s)
	}
	return s
}

// names reports whether the pattern means a program in a place that others can write to: its fixed beginning is there.
func (p *pattern) names(prog *Program) bool {
	if p.all || p.never {
		return p.all
	}
	if !p.glob {
		return p.text == p.folded(prog.Real)
	}
	return strings.HasPrefix(p.folded(prog.Real), p.fixed) && path.Dir(p.fixed+"x") == path.Dir(p.folded(prog.Real))
}

// globMatch walks pattern and text once, keeping all places of the pattern that are possible: time is bounded by the
// product of both lengths whatever the pattern.
func globMatch(glob, text string) bool {
	tokens := globTokens(glob)
	at := make([]bool, len(tokens)+1)
	at[0] = true
	skipStars(tokens, at)
	for _, c := range text {
		next := make([]bool, len(tokens)+1)
		for i, token := range tokens {
			if !at[i] {
				continue
			}
			switch {
			case token.stars == 2, token.stars == 1 && c != '/':
				next[i] = true
			case token.stars == 0 && (token.any && c != '/' || !token.any && c == token.char):
				next[i+1] = true
			}
		}
		at = next
		skipStars(tokens, at)
	}
	return at[len(tokens)]
}

// globToken is one element of a pattern: a character, "?", "*" or "**".
type globToken struct {
	char  rune
	any   bool
	stars int
}

func globTokens(glob string) (tokens []globToken) {
	for len(glob) > 0 {
		stars := len(glob) - len(strings.TrimLeft(glob, "*"))
		if stars > 0 {
			tokens = append(tokens, globToken{stars: min(stars, 2)})
			glob = glob[stars:]
			continue
		}
		for _, c := range glob {
			if c == '*' {
				break
			}
			tokens = append(tokens, globToken{char: c, any: c == '?'})
			glob = glob[len(string(c)):]
		}
	}
	return tokens
}

// skipStars lets stars stand for nothing.
func skipStars(tokens []globToken, at []bool) {
	for i, token := range tokens {
		if at[i] && token.stars > 0 {
			at[i+1] = true
		}
	}
}
