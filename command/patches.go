package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// A patch names the files that it changes, and arguments do not: "git apply x" writes .claude/settings.json and takes the hook out of
// the client, "patch -p0 -i x" writes .git/hooks/pre-commit. So the names are read, and judged like operands.

// Bounds of a patch that is looked into.
const (
	maxPatch        int64 = 1 << 20
	maxPatchedNames       = 500
)

// patched objects to a patch that changes a file which may not be written without a question, or that nobody can look into.
func (v *evaluation) patched(seg *Segment) {
	if seg.By != ByPreset || !patches(seg) {
		return
	}
	if why := v.patchedNames(seg); why != "" {
		seg.found(ArgumentWrite, why)
		seg.By = NotSatisfied
	}
}

// patches reports whether a segment applies a patch.
func patches(seg *Segment) bool {
	switch name := seg.Program.names()[0]; name {
	case "patch", "gpatch":
		return !slices.Contains(seg.Args, "--dry-run")
	case "git":
		does := subcommand(seg.Args)
		return (does == "apply" || does == "am") && !slices.ContainsFunc(seg.Args, func(a string) bool {
			return slices.Contains([]string{"--check", "--stat", "--numstat", "--summary", "--abort", "--continue", "--skip", "--quit", "--show-current-patch"}, a)
		})
	}
	return false
}

// subcommand is the first word of git's that is neither an option nor the value of one.
func subcommand(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-C" || args[i] == "-c":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// patchedNames says why the names in a patch ask; "" if none does.
func (v *evaluation) patchedNames(seg *Segment) string {
	var files []string
	for i := range seg.effects {
		if e := &seg.effects[i]; e.Kind == shell.Reads && e.Path != "." && e.Path != "-" {
			files = append(files, path.Join(e.Dir, e.Path))
		}
	}
	for i := range seg.Redirs {
		if r := &seg.Redirs[i]; r.Reads() {
			files = append(files, r.Target)
		}
	}
	if len(files) == 0 {
		return "it is not known what the patch changes"
	}
	disk, ok := v.e.resolver.files.(contents)
	for _, file := range files {
		r, err := v.locate(seg.Dir, file)
		switch {
		case err == nil && r.Kind == place.KindMissing && !v.written:
			continue // there is nothing to apply
		case err != nil || !ok || v.written || len(seg.OtherDir) > 0:
			return "it is not known what the patch changes by then"
		}
		text, err := disk.ReadFile(r.Real, maxPatch)
		if err != nil {
			return "the patch cannot be looked into"
		}
		if why := v.namesIn(string(text), seg); why != "" {
			return why
		}
	}
	return ""
}

// namesIn judges the names in the text of a patch. How many directories are taken off them is left open: all that could be meant
// must be files that may be written.
func (v *evaluation) namesIn(text string, seg *Segment) string {
	names, p := 0, v.presetPermit()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasSuffix(line, "mode 120000") {
			return "the patch makes a link"
		}
		for _, head := range []string{"+++ ", "--- ", "*** ", "Index: ", "rename to ", "copy to ", "diff --git "} {
			name, ok := strings.CutPrefix(line, head)
			if !ok {
				continue
			}
			if head == "diff --git " {
				name = name[strings.LastIndex(name, " ")+1:]
			}
			name, _, _ = strings.Cut(name, "\t")
			if name = strings.TrimSpace(name); name == "" || name == "/dev/null" {
				continue
			}
			if names++; names > maxPatchedNames || name[0] == '"' || !v.mayPatch(name, seg, p) {
				return "the patch changes " + name
			}
		}
	}
	return ""
}

func (v *evaluation) mayPatch(name string, seg *Segment, p permit) bool {
	for rest := strings.TrimLeft(name, "/"); rest != ""; _, rest, _ = strings.Cut(rest, "/") {
		r, err := v.locate(seg.Dir, rest)
		if err != nil || !v.mayWrite(r, p) {
			return false
		}
	}
	return true
}
