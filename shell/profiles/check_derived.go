package profiles

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// Some programs make up the names of what they write: from the name that they read, with another end. "gunzip .envrc.gz"
// writes .envrc, "cp -b --suffix=c b .envr" too, and no argument has that name.

// compressed are the ends that programs take off a name, with what they put in their place.
var compressed = map[string]string{
	".gz": "", ".z": "", ".tgz": ".tar", ".taz": ".tar",
	".bz2": "", ".bz": "", ".tbz2": ".tar", ".tbz": ".tar",
	".xz": "", ".lzma": "", ".txz": ".tar", ".tlz": ".tar",
	".zst": "", ".tzst": ".tar", ".lz4": "", ".tlz4": ".tar", ".lz": "",
}

// checkCompress adds the names of what a program packs or unpacks.
func checkCompress(a *arguments) {
	if slices.ContainsFunc([]string{"-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list", "-o"}, a.has) {
		return
	}
	// The name may stand in the file, and of a directory nobody sees which files it has.
	for _, option := range []string{"-N", "--name", "-r", "--recursive", "-m", "--multiple"} {
		if a.has(option) && (a.profile.Names[0] != "lz4" || option == "-r") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: option})
		}
	}
	suffix, given := a.value("-S", "--suffix")
	if strings.Contains(suffix, "/") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: suffix})
	}
	for _, file := range a.operands {
		if end := path.Ext(file); end != file && end != "" {
			if instead, ok := compressed[strings.ToLower(end)]; ok {
				a.does(shell.Effect{Kind: shell.Writes, Path: strings.TrimSuffix(file, end) + instead})
			}
		}
		if i := len(file) - len("-gz"); i > 0 && strings.ContainsAny(file[i:i+2], "-_") { // old ends: a-gz, a_z
			a.does(shell.Effect{Kind: shell.Writes, Path: file[:i+strings.IndexAny(file[i:], "-_")]})
		}
		if name, ok := strings.CutSuffix(file, suffix); given && ok && name != "" {
			a.does(shell.Effect{Kind: shell.Writes, Path: name})
		}
		if given { // else what is packed ends in a way that no guarded file does
			a.does(shell.Effect{Kind: shell.Writes, Path: file + suffix})
		}
	}
}

// checkBackup adds the names under which what is overwritten is kept, unless they end in "~" or a number.
func checkBackup(a *arguments) {
	suffix, given := a.value("-S", "--suffix")
	if !given {
		return
	}
	if strings.Contains(suffix, "/") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: suffix})
		return
	}
	for _, e := range a.effects {
		if e.Kind == shell.Writes {
			e.Path = strings.TrimRight(e.Path, "/") + suffix
			e.Via = "--suffix"
			a.effects = append(a.effects, e)
		}
	}
}

// plainPieces begins names that no guarded file has, whatever is put behind: "part-", "out_", "x".
var plainPieces = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*[-_]|x|xx|[a-z0-9_]*(part|chunk|piece|split|segment)[a-z0-9]*\.?)?$`)

// plainSuffix is the end of a name that is a kind of file.
var plainSuffix = regexp.MustCompile(`^(\.[A-Za-z0-9]+)*$`)

// checkPieces looks at the names of pieces: a beginning, letters or numbers, and an end.
func (a *arguments) checkPieces(prefix, suffix string) {
	if base := path.Base(prefix); !strings.HasSuffix(prefix, "/") && !plainPieces.MatchString(base) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: prefix})
	}
	if !plainSuffix.MatchString(suffix) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: suffix})
	}
}

// plainFormat is a number of csplit's, with a kind of file behind it.
var plainFormat = regexp.MustCompile(`^(%0?[0-9]*d(\.[A-Za-z0-9]+)*)?$`)
