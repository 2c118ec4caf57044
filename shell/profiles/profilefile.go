package profiles

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// roleNames are the roles that words can have.
var roleNames = []string{
	"text",     // nothing outside the program
	"reads",    // a file or directory that is read
	"writes",   // a file or directory that is created, changed or removed
	"report",   // kinds of reports with the files that are written: json:out.json
	"ref",      // a revision that is handed on to git, or to a shell on the way
	"revision", // a revision of git, or a path that is read
	"enters",   // a directory to work in
	"package",  // code of others, by the name under which it is published
	"url",      // an address that is talked to
	"host",     // a host that is talked to, with a user before it perhaps
	"runs",     // a command: this word and all that follow
	"obeys",    // a file of configuration that is obeyed
	"script",   // a file whose code is run as code of the project
	"args",     // this word and all that follow are arguments of the code that is run, not options
	"program",  // text of a programming language: program:awk
	"unknown",  // never understood
}

// profileReader reads one file of profiles.
type profileReader struct {
	file     string
	line     int
	shared   map[string]*Section
	profiles []*Profile
	profile  *Profile
	section  *Section
	sharing  bool // in a definition
}

// parseProfiles reads the profiles of a file. Errors name file and line.
func parseProfiles(file, text string) ([]*Profile, error) {
	r := &profileReader{file: file, shared: map[string]*Section{}}
	for whole := range strings.Lines(text) {
		r.line++
		line, _, _ := strings.Cut(whole, " #")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := r.directive(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, r.line, err)
		}
		r.sharing = words[0] == "define" || r.sharing && words[0] != "program"
		if r.profile != nil && !r.sharing {
			r.profile.Source += whole
		}
	}
	return r.profiles, nil
}

func (r *profileReader) directive(name string, words []string) error {
	switch name {
	case "program":
		return r.program(words)
	case "define":
		if len(words) != 1 || r.shared[words[0]] != nil {
			return fmt.Errorf("define: expected one new name")
		}
		r.section = &Section{Options: map[string]*Option{}}
		r.shared[words[0]] = r.section
		return nil
	}
	if r.section == nil {
		return fmt.Errorf("%s: there is no program yet", name)
	}
	before, after, colon := cutColon(words)
	switch name {
	case "command":
		return r.command(words)
	case "style", "number", "anywhere":
		return r.setting(name, words)
	case "leads":
		r.section.Leads = true
		return nil
	case "use":
		return r.use(words)
	case "flags":
		return r.options(before, after, NoValue)
	case "value":
		return r.options(before, after, Required)
	case "optional":
		return r.options(before, after, Optional)
	case "ends":
		return r.options(before, after, Ends)
	case "operands":
		roles, err := parseRoles(words)
		r.section.Operands = roles
		return err
	case "with":
		roles, err := parseRoles(after)
		if err == nil && (!colon || len(before) == 0) {
			err = fmt.Errorf("with: expected options, a colon and roles")
		}
		r.section.Else = append(r.section.Else, Variant{before, roles})
		return err
	case "default", "does":
		effects, err := parseEffects(words)
		if name == "does" {
			r.section.Does = append(r.section.Does, effects...)
		} else {
			r.section.Default = effects
		}
		return err
	case "check":
		for _, word := range words {
			if checks[word] == nil {
				return fmt.Errorf("check: there is no %q", word)
			}
		}
		r.section.Checks = append(r.section.Checks, words...)
		return nil
	}
	return fmt.Errorf("%q is not a directive", name)
}

func (r *profileReader) program(names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("program: expected a name")
	}
	r.section = &Section{Options: map[string]*Option{}}
	r.profile = &Profile{Names: names, Style: GNU, Sections: map[string]*Section{"": r.section}, File: r.file}
	r.profiles = append(r.profiles, r.profile)
	return nil
}

// command begins a subcommand. "|" separates other names for it.
func (r *profileReader) command(words []string) error {
	if r.profile == nil {
		return fmt.Errorf("command: there is no program yet")
	}
	r.section = &Section{Options: map[string]*Option{}}
	for name := range strings.SplitSeq(strings.Join(words, " "), "|") {
		name = strings.TrimSpace(name)
		if name == "" || r.profile.Sections[name] != nil {
			return fmt.Errorf("command: %q is no new subcommand", name)
		}
		if r.section.Command == "" {
			r.section.Command = name
		}
		r.profile.Sections[name] = r.section
	}
	return nil
}

func (r *profileReader) setting(name string, words []string) error {
	switch {
	case r.profile == nil || r.section != r.profile.Sections[""]:
		return fmt.Errorf("%s: stands at the head of a program", name)
	case name == "number":
		r.profile.Number = true
	case name == "anywhere":
		r.profile.Anywhere = true
	case len(words) != 1 || !slices.Contains([]Style{GNU, POSIX, Single, Bundle, Letters, Raw}, Style(words[0])):
		return fmt.Errorf("style: expected gnu, posix, single, bundle, letters or raw")
	default:
		r.profile.Style = Style(words[0])
	}
	return nil
}

// use takes over what is defined under names. What the section has said before is its own and stays.
func (r *profileReader) use(names []string) error {
	own := maps.Clone(r.section.Options)
	for _, name := range names {
		shared := r.shared[name]
		if shared == nil {
			return fmt.Errorf("use: %q is not defined above", name)
		}
		for spelling, option := range shared.Options {
			if own[spelling] != nil {
				continue
			}
			if r.section.Options[spelling] != nil {
				return fmt.Errorf("use %s: %s is here already", name, spelling)
			}
			r.section.Options[spelling] = option
		}
		if r.section.Operands == nil {
			r.section.Operands = shared.Operands
		}
		r.section.Else = append(r.section.Else, shared.Else...)
		r.section.Does = append(r.section.Does, shared.Does...)
		r.section.Checks = append(r.section.Checks, shared.Checks...)
	}
	return nil
}

// options adds options. After the colon stands the role of the value, effects, or "operands" and what they become.
func (r *profileReader) options(spellings, meaning []string, value Value) error {
	option := &Option{Value: value, Role: Role{Name: "text"}}
	var err error
	switch {
	case len(meaning) == 0:
	case len(meaning) == 2 && meaning[0] == "follows" && (meaning[1] == "reads" || meaning[1] == "writes"):
		option.Follows = shell.Kind(meaning[1])
	case meaning[0] == "operands":
		option.Operands, err = parseRoles(meaning[1:])
	case value != NoValue && value != Ends && len(meaning) == 1 && isRole(meaning[0]):
		option.Role, err = parseRole(meaning[0])
	default:
		option.Does, err = parseEffects(meaning)
	}
	if err != nil {
		return err
	}
	if len(spellings) == 0 {
		return fmt.Errorf("expected options")
	}
	for _, s := range spellings {
		if s[0] != '-' && s[0] != '+' || len(s) < 2 {
			return fmt.Errorf("%q is not an option", s)
		}
		if r.section.Options[s] != nil {
			return fmt.Errorf("%s is here already", s)
		}
		r.section.Options[s] = option
	}
	return nil
}

func cutColon(words []string) (before, after []string, found bool) {
	if i := slices.Index(words, ":"); i >= 0 {
		return words[:i], words[i+1:], true
	}
	return words, nil, false
}

func isRole(word string) bool {
	_, err := parseRole(word)
	return err == nil
}

func parseRoles(words []string) (roles []Role, err error) {
	roles = []Role{}
	many := false
	for _, word := range words {
		role, err := parseRole(word)
		if err != nil {
			return nil, err
		}
		if role.Many && many {
			return nil, fmt.Errorf("%s: only one role may stand for any number", word)
		}
		many = many || role.Many
		roles = append(roles, role)
	}
	return roles, nil
}

func parseRole(word string) (Role, error) {
	name := strings.TrimRight(word, "*?")
	role := Role{Many: strings.HasSuffix(word, "*"), Maybe: strings.HasSuffix(word, "?")}
	role.Name, role.Lang, _ = strings.Cut(name, ":")
	if !slices.Contains(roleNames, role.Name) || (role.Lang != "") != (role.Name == "program") {
		return Role{}, fmt.Errorf("%q is not a role", word)
	}
	return role, nil
}

// parseEffects reads effects, separated by commas: "project", "reads FILE", "evaluates sh".
func parseEffects(words []string) (effects []shell.Effect, err error) {
	for text := range strings.SplitSeq(strings.Join(words, " "), ",") {
		kind, object, _ := strings.Cut(strings.TrimSpace(text), " ")
		e := shell.Effect{Kind: shell.Kind(kind)}
		switch e.Kind {
		case shell.Reads, shell.Writes, shell.Enters, shell.Destroys:
			e.Path = object
		case shell.Network:
			e.Host = object
		case shell.Evaluates:
			e.Lang = object
		case shell.Project, shell.Installs, shell.Configures, shell.Environment, shell.Signs, shell.Unknown:
		default:
			return nil, fmt.Errorf("%q is not an effect", text)
		}
		effects = append(effects, e)
	}
	return effects, nil
}
