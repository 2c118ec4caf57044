package bridge

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// target resolves a path as the client will open it.
func (l *factsFinder) target(workDir, path string, op toolward.Op) (toolward.Target, error) {
	resolved, err := l.places.Resolve(workDir, path)
	switch {
	case errors.Is(err, place.ErrBadPath), errors.Is(err, place.ErrDisguised):
		return toolward.Target{}, &toolward.InvalidArgs{Text: err.Error()}
	case err != nil:
		return toolward.Target{}, fmt.Errorf("look at a target: %w", err)
	}
	if err := l.checkSpelling(workDir, path, resolved.Real); err != nil {
		return toolward.Target{}, err
	}
	if op == "" {
		op = toolward.OpRead
	}
	return resolved.Target(op), nil
}

// checkSpelling refuses a path that the client would read as another one. Claude Code expands paths before its hooks
// see them, and then nothing is refused here; but what it does to a path is no promise, and an unexpanded
// " ~/.ssh/config" would be judged as a file of the workspace and opened as a key.
func (l *factsFinder) checkSpelling(workDir, asked, real string) error {
	dropped := func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' } // what String.prototype.trim drops, and a little more
	switch {
	case strings.TrimFunc(asked, dropped) != asked:
		return &toolward.InvalidArgs{Text: "a path begins or ends with white space, which the client may drop"}
	case !norm.NFC.IsNormalString(asked):
		return &toolward.InvalidArgs{Text: "a path is not in Unicode's composed form, into which the client may put it"}
	case !hasDots(asked):
		return nil
	}
	// The kernel goes up from where a link leads; a client that cleans the text goes up from the link.
	cleaned, err := l.places.Resolve(workDir, l.clean(workDir, asked))
	if err != nil || cleaned.Real != real {
		return &toolward.InvalidArgs{Text: `a path goes up by ".." behind a symbolic link, so it means two files: give it without ".."`}
	}
	return nil
}

// clean is the absolute path as a client computes it, by its text alone.
func (l *factsFinder) clean(workDir, asked string) string {
	switch {
	case asked == "~", strings.HasPrefix(asked, "~/"):
		asked = l.home + asked[1:]
	case !path.IsAbs(asked):
		asked = workDir + "/" + asked
	}
	return path.Clean(asked)
}

func hasDots(p string) bool { return slices.Contains(strings.Split(p, "/"), "..") }

// lookIntoGlob adds where a pattern looks when it leads out of the directory that the call names.
func lookIntoGlob(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	pattern := r.Params.Text("pattern")
	fixed, rest := pattern, ""
	if at := strings.IndexAny(pattern, "*?[]{}()!|"); at >= 0 {
		fixed, rest = pattern[:strings.LastIndexByte(pattern[:at], '/')+1], pattern[at:]
	}
	leaves := hasDots(fixed) || path.IsAbs(fixed) || strings.HasPrefix(fixed, "~")
	if hasDots(rest) {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "path_escape", Effect: toolward.EffectAsk, Detail: `the pattern goes up by ".." from directories that it only describes`,
		})
	}
	if !leaves || len(facts.Targets) == 0 {
		return
	}
	target, err := l.target(facts.Targets[0].Real, fixed, toolward.OpRead)
	if err != nil {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "path_escape", Effect: toolward.EffectAsk, Detail: "where the pattern looks cannot be told: " + err.Error(),
		})
		return
	}
	facts.Targets = append(facts.Targets, target)
}
