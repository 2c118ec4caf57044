package command

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// What some subcommands of git do stands in its settings: "git remote -v" shows the password in the address of a remote, and
// "git commit" signs in the person's name where commit.gpgsign says so. An agent needs no option for either.

// bySettings are effects of a git command that its settings decide.
func (v *evaluation) bySettings(seg *Segment) (effects []shell.Effect) {
	if !seg.obeysRepositories() || v.r.Places == nil {
		return nil
	}
	does := subcommand(seg.Args)
	at := slices.Index(seg.Args, does)
	has := func(options ...string) bool {
		return slices.ContainsFunc(seg.Args[at+1:], func(a string) bool { return slices.Contains(options, a) })
	}
	switch {
	case does == "":
	case does == "remote" && has("-v", "--verbose", "get-url", "show"), does == "ls-remote" && has("--get-url"):
		if v.settingsHold(seg, false, holdsSecret) {
			effects = append(effects, shell.Effect{Kind: shell.Environment, Via: does})
		}
	case does == "config" && showsValues(seg.Args[at+1:]), does == "var" && has("-l"):
		if v.settingsHold(seg, true, holdsSecret) {
			effects = append(effects, shell.Effect{Kind: shell.Environment, Via: does})
		}
	case slices.Contains(committing, does) && !has("--no-gpg-sign", "--no-sign", "--abort", "--quit", "-l", "--list") && len(seg.Args) > at+signedFrom(does):
		key := "commit.gpgsign"
		if does == "tag" || does == "push" {
			key = does + ".gpgsign"
		}
		if !hasEffect(seg.effects, shell.Signs) && !switchedOff(seg.Args[:at], key) && v.settingsHold(seg, true, signs(key)) {
			effects = append(effects, shell.Effect{Kind: shell.Signs, Via: key})
		}
	}
	return effects
}

// committing are subcommands that make what git can sign.
var committing = strings.Fields("commit merge rebase cherry-pick revert am pull tag push")

// signedFrom is how many words a subcommand has at least that makes something.
func signedFrom(does string) int {
	if does == "tag" {
		return 1
	}
	return 0
}

// showsValues reports whether "git config" may show values other than those of names that hold no secrets.
func showsValues(args []string) bool {
	names := 0
	for _, a := range args {
		if strings.HasPrefix(a, "-") || a == "get" {
			continue
		}
		names++
		section, _, _ := strings.Cut(strings.ToLower(a), ".")
		if !slices.Contains([]string{"user", "core", "init", "branch", "pull", "push", "merge", "rebase", "commit", "color", "diff", "log", "status", "fetch"}, section) {
			return true
		}
	}
	return names == 0 || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--get-") && a != "--get-all" })
}

// inAddress is a password, or a token, in an address.
var inAddress = regexp.MustCompile(`://([^/@\s:]*:[^/@\s]+|[^/@\s]{20,})@`)

func holdsSecret(key, value string) bool {
	for _, word := range []string{"extraheader", "password", "token", "secret"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return inAddress.MatchString(value) || inAddress.MatchString(key)
}

func signs(wanted string) func(key, value string) bool {
	return func(key, value string) bool {
		return (key == wanted || wanted == "tag.gpgsign" && key == "tag.forcesignannotated") &&
			!slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
	}
}

// switchedOff reports whether the last "-c" for a setting says no, which counts more than any file: "git -c commit.gpgsign=false commit".
func switchedOff(args []string, key string) bool {
	off := false
	for i, a := range args {
		if name, value, given := strings.Cut(a, "="); i > 0 && args[i-1] == "-c" && strings.EqualFold(name, key) {
			off = given && slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(value))
		}
	}
	return off && key != "tag.gpgsign" // tag.forceSignAnnotated signs as well
}

// maxSettingsFiles bounds how many files of settings one decision reads.
const maxSettingsFiles = 12

// settingsHold reports whether a setting of git's is one that is looked for, in the repository in which a segment works and, if
// shared, among those of the person. What cannot be read may be.
func (v *evaluation) settingsHold(seg *Segment, shared bool, is func(key, value string) bool) bool {
	var files []string
	for _, dir := range append([]string{seg.Dir}, seg.OtherDir...) {
		for i := range seg.effects {
			if e := &seg.effects[i]; e.Dir != "" {
				files = append(files, v.repositoryConfig(absolute(dir, e.Dir)))
				break
			}
		}
		files = append(files, v.repositoryConfig(dir))
	}
	if home := v.r.Places.Layout().Home; shared {
		files = append(files, path.Join(home, ".gitconfig"), path.Join(home, ".config/git/config"), "/etc/gitconfig")
	}
	for i := 0; i < len(files); i++ {
		if i >= maxSettingsFiles {
			return true
		}
		if files[i] == "" || slices.Contains(files[:i], files[i]) {
			continue
		}
		text, ok := v.settingsText(files[i])
		if !ok {
			return true
		}
		found := false
		eachSetting(text, func(key, value string) {
			found = found || is(key, value)
			if section, _, _ := strings.Cut(key, "."); section == "include" || section == "includeif" {
				if rest, ok := strings.CutPrefix(value, "~/"); ok {
					value = path.Join(v.r.Places.Layout().Home, rest)
				}
				files = append(files, absolute(path.Dir(files[i]), value))
			}
		})
		if found {
			return true
		}
	}
	return false
}

// settingsText reads a file of settings; not ok if it is there and cannot be read.
func (v *evaluation) settingsText(file string) (text string, ok bool) {
	disk, ok := v.e.resolver.files.(contents)
	if !ok {
		return "", false
	}
	real := v.moment.real(file, anything) // settings are often links into a directory of dotfiles
	if real == "" {
		return "", true
	}
	raw, err := disk.ReadFile(real, maxGitConfig)
	return string(raw), err == nil || isMissing(err) || errors.Is(err, fs.ErrPermission)
}

// eachSetting goes through the text of a configuration of git. Keys are in lower case, with the names of their sections as written.
func eachSetting(text string, each func(key, value string)) {
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line, "]")
			kind, name, _ := strings.Cut(strings.TrimPrefix(head, "["), " ")
			section = strings.ToLower(kind) + "."
			if name = strings.Trim(strings.TrimSpace(name), `"`); name != "" {
				section += name + "."
			}
			line = strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		each(section+strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`))
	}
}
