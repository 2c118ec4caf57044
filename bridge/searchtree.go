package bridge

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// maxSearched bounds how many names are looked at for one search, the nearest first.
const maxSearched = 20000

// addSecretFiles adds the secret files that a search for text would read below its directory. Hiding their lines in the result is
// not enough: which files match, how many lines do and how full the result is tell one character of a secret with each search.
func (l *factsFinder) addSecretFiles(facts *toolward.Facts, r *toolward.Request, root toolward.Target) {
	found := l.secretFiles(root.Real, func(below string) bool { return leavesOut(r, below) })
	for i, file := range found {
		known := slices.ContainsFunc(facts.Targets, func(t toolward.Target) bool { return t.Real == file })
		if i < maxSecretTargets && !known {
			facts.Targets = append(facts.Targets, toolward.Target{
				Path: root.Path, Real: file, Op: root.Op, Zone: l.places.Classify(file).Word(), Kind: toolward.KindFile, Links: 1,
			})
		}
	}
	if len(found) > 0 {
		below, _ := filepath.Rel(root.Real, found[0])
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "search_secret", Effect: toolward.EffectAsk,
			Detail: "the search would read " + below + `, and its result tells what is in it; a glob such as "!` + filepath.Base(below) + `" leaves it out`,
		})
	}
}

// maxSecretTargets are the secret files of one search that are named.
const maxSecretTargets = 3

// secretFiles are those below a directory whose names a search does not leave out. Links are not followed: no client's search
// follows them.
func (l *factsFinder) secretFiles(root string, skip func(below string) bool) (found []string) {
	looked := 0
	for pending := []string{root}; len(pending) > 0 && looked < maxSearched && len(found) <= maxSecretTargets; pending = pending[1:] {
		entries, err := os.ReadDir(pending[0])
		if err != nil {
			continue // what cannot be listed cannot be searched by the same account either
		}
		looked += len(entries) + 1
		for _, e := range entries {
			p := filepath.Join(pending[0], e.Name())
			switch {
			case e.IsDir():
				pending = append(pending, p)
			case e.Type().IsRegular() && l.places.Classify(p) <= place.Secret:
				if below, err := filepath.Rel(root, p); err != nil || !skip(below) {
					found = append(found, p)
				}
			}
		}
	}
	return found
}

// leavesOut reports whether the patterns of a search leave a file out for certain: clients give them to ripgrep, where the last one
// that matches wins, and a file that none matches is left out if one says what to take.
func leavesOut(r *toolward.Request, below string) bool {
	if kinds, known := searchTypes[r.Params.Text("type")]; known && !slices.Contains(kinds, path.Ext(below)) {
		return true
	}
	for _, name := range []string{"glob", "include", "include_pattern"} {
		if text := r.Params.Text(name); text != "" && globLeavesOut(text, below) {
			return true
		}
	}
	return false
}

// searchTypes are the kinds of files that searches name most, by what their names end in. Those of other kinds count as taken.
var searchTypes = map[string][]string{
	"go": {".go"}, "py": {".py", ".pyi"}, "rust": {".rs"}, "css": {".css", ".scss"}, "html": {".htm", ".html", ".ejs"},
	"js": {".js", ".jsx", ".vue", ".cjs", ".mjs"}, "ts": {".ts", ".tsx", ".cts", ".mts"}, "md": {".markdown", ".md", ".mdown", ".mdwn", ".mdx", ".mkd", ".mkdn"},
}

func globLeavesOut(text, below string) bool {
	parts := strings.Fields(text)
	if !strings.ContainsAny(text, "{}") {
		parts = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
	}
	takes, left := false, false
	for _, part := range parts {
		switch pattern, not := strings.CutPrefix(part, "!"); {
		case not:
			left = left || mustMatch(pattern, below)
		case mayMatch(pattern, below):
			return false // in doubt it is taken, and a later pattern that leaves it out is not waited for
		default:
			takes = true
		}
	}
	return left || takes
}

// mustMatch reports whether a pattern matches a file for certain.
func mustMatch(pattern, below string) bool {
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "**/"), "/")
	if pattern == below {
		return true
	}
	if strings.ContainsAny(pattern, `/{}[]\`) {
		return false
	}
	matched, err := path.Match(pattern, path.Base(below))
	return matched && err == nil
}

// mayMatch reports whether a pattern may match a file. Only the last part of the pattern is looked at.
func mayMatch(pattern, below string) bool {
	last := strings.ToLower(pattern[strings.LastIndexByte(pattern, '/')+1:])
	if strings.Count(last, "{") != strings.Count(pattern, "{") || strings.ContainsAny(last, `[]\`) || last == "" || last == "**" {
		return true
	}
	alternatives := []string{last}
	if from, to := strings.IndexByte(last, '{'), strings.LastIndexByte(last, '}'); from >= 0 && to > from {
		if strings.Count(last, "{") > 1 {
			return true
		}
		alternatives = nil
		for one := range strings.SplitSeq(last[from+1:to], ",") {
			alternatives = append(alternatives, last[:from]+one+last[to+1:])
		}
	}
	return slices.ContainsFunc(alternatives, func(one string) bool {
		matched, err := path.Match(one, strings.ToLower(path.Base(below)))
		return matched || err != nil
	})
}
