package place

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// key is the form in which paths are compared: macOS's /private prefix removed, and folded where the file
// system folds.
func (c *Classifier) key(p string) string {
	if rest, ok := strings.CutPrefix(p, "/private/"); ok {
		switch firstElement(rest) {
		case "etc", "var", "tmp": // /etc, /var and /tmp are links into /private on macOS
			p = p[len("/private"):]
		}
	}
	return c.fold(p)
}

// fold maps all spellings that a case-insensitive file system takes for one file to one string. Such file
// systems also ignore the difference between composed and decomposed letters.
func (c *Classifier) fold(s string) string {
	if !c.layout.FoldCase {
		return s
	}
	return anyCase(s) // does not allocate when there is nothing to lower
}

// plain returns the guarded name that an element is another spelling of, or "". It stops an agent from
// reaching .git/config as ".git /config", ".git::$INDEX_ALLOCATION/config", "GIT~1/config" or with invisible
// characters, which Windows, FAT, SMB and HFS+ volumes take for the same directory. The spellings
// are refused everywhere, because a POSIX system can have such a volume mounted anywhere.
func (c *Classifier) plain(element string) string {
	if !looksDisguised(element) {
		return ""
	}
	name := anyCase(strings.Map(dropIgnorable, element))
	name, _, _ = strings.Cut(name, ":")  // NTFS stream
	name = strings.TrimRight(name, " .") // Windows drops trailing spaces and dots
	if name != element && c.rules.guarded[c.fold(name)] {
		return c.fold(name)
	}
	// 8.3 short name: up to six characters, a tilde and a digit.
	if stem, number, ok := strings.Cut(name, "~"); ok && number != "" && number[0] >= '1' && number[0] <= '9' {
		if long, ok := c.rules.short[stem]; ok {
			return long
		}
	}
	return ""
}

// anyCase is a text in the one form that stands for all cases of its letters: "ſ" is an "s" and the Kelvin sign a "k" to a file system
// that folds.
func anyCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Fold().String(norm.NFC.String(s))
}

// looksDisguised is the cheap test that ordinary names fail.
func looksDisguised(element string) bool {
	if element == "" || element == "." || element == ".." {
		return false
	}
	for i := 0; i < len(element); i++ {
		if b := element[i]; b == ':' || b == '~' || b >= utf8.RuneSelf {
			return true
		}
	}
	last := element[len(element)-1]
	return last == ' ' || last == '.'
}

// dropIgnorable removes what HFS+ ignores in names.
func dropIgnorable(r rune) rune {
	if unicode.Is(unicode.Cf, r) || r == '\u034f' || (r >= '\ufe00' && r <= '\ufe0f') {
		return -1
	}
	return r
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func firstElement(p string) string {
	element, _, _ := strings.Cut(p, "/")
	return element
}
