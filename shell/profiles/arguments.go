package profiles

import (
	"strings"

	"github.com/toolward/toolward/shell"
)

// Bounds, so that arguments made for it do not take long to read: in bytes, what an option is looked for in, and the
// directory that the arguments name.
const (
	maxOption    = 64
	maxDirectory = 1024
)

// arguments are the arguments of a program, taken apart by its profile.
type arguments struct {
	profile  *Profile
	section  *Section
	given    []given // of the section
	changed  []Role  // what options make of the operands; nil: nothing
	operands []string
	plain    int      // how many operands stand before "--"; -1: there is no "--"
	behind   []string // what stands behind an option that ends the others
	dir      string   // directory that the arguments name to work in
	effects  []shell.Effect
}

// given is an option as it was given.
type given struct {
	spelling string
	value    string
	attached bool // it has a value
	option   *Option
}

// newArguments begins with room for as many words as most commands have.
func newArguments(p *Profile) *arguments {
	first := &struct {
		arguments
		given    [2]given
		operands [3]string
	}{}
	a := &first.arguments
	a.profile, a.section, a.plain = p, p.Sections[""], -1
	a.given, a.operands = first.given[:0], first.operands[:0]
	return a
}

// Effects says what the program does with these arguments, as far as they tell.
func (p *Profile) Effects(args []string) []shell.Effect {
	a := newArguments(p)
	if p.Style == Raw {
		a.operands = args
		if a.section.Operands != nil {
			a.assign(a.section.Operands)
		}
		a.finish()
		return a.effects
	}
	rest := args
	if p.Style == Bundle {
		rest = a.bundle(args)
	}
	if len(p.Sections) > 1 {
		rest = a.subcommand(args)
	}
	if rest != nil {
		a.read(rest, p.Style)
	}
	a.conclude()
	return a.effects
}

// bundle puts dashes before options that stand in the first word without them: "xzf a.tar" is "-x -z -f a.tar".
func (a *arguments) bundle(args []string) []string {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return args
	}
	var plain []string
	values := args[1:]
	for i := range len(args[0]) {
		spelling := "-" + args[0][i:i+1]
		plain = append(plain, spelling)
		if o := a.find(spelling); o != nil && o.Value == Required && len(values) > 0 {
			plain, values = append(plain, values[0]), values[1:]
		}
	}
	return append(plain, values...)
}

// subcommand reads the program's own options up to a subcommand, and returns what follows it.
func (a *arguments) subcommand(args []string) []string {
	rest := a.read(args, POSIX)
	if len(rest) == 0 || a.plain >= 0 { // what stands behind "--" is no subcommand
		return nil
	}
	name := rest[0]
	section, known := a.profile.Sections[name], a.profile.startsCommand(name)
	between, rest := a.leading(section, name, rest[1:])
	for ; len(rest) > 0 && a.profile.startsCommand(name+" "+rest[0]); rest = rest[1:] {
		name += " " + rest[0]
		section = a.profile.Sections[name]
	}
	if other := a.profile.Sections["*"]; other != nil && !known {
		section, known, rest = other, true, append([]string{name}, rest...)
	}
	if !known || section == nil {
		a.does(shell.Effect{Kind: shell.Unknown, Via: name})
		return nil
	}
	a.finish()
	if between != nil {
		a.dir, a.effects = between.dir, append(a.effects, between.effects...)
	}
	a.section, a.operands, a.given, a.changed, a.plain = section, nil, nil, nil, -1
	return append([]string{}, rest...)
}

// leading takes the options that stand between the words of a subcommand, if what follows them is one of its words.
func (a *arguments) leading(section *Section, name string, args []string) (between *arguments, rest []string) {
	if section == nil || !section.Leads || len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return nil, args
	}
	between = &arguments{profile: a.profile, section: section, plain: -1, dir: a.dir}
	rest = between.read(args, POSIX)
	if len(rest) == 0 || between.plain >= 0 || !a.profile.startsCommand(name+" "+rest[0]) {
		return nil, args
	}
	return between, rest
}

// startsCommand reports whether a subcommand begins with these words.
func (p *Profile) startsCommand(words string) bool {
	for name := range p.Sections {
		if name == words || strings.HasPrefix(name, words+" ") {
			return words != ""
		}
	}
	return false
}

// read takes options and operands. With the style posix it stops before the first operand and returns the rest, which
// is also what the operands are, unless a subcommand follows.
func (a *arguments) read(args []string, style Style) (rest []string) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case a.nextRole() == "args" && len(a.operands) > 0: // "--" is one of them
			a.operands = append(a.operands, args...)
			return args
		case arg == "--" && a.find(arg) == nil:
			a.plain = len(a.operands)
			a.operands = append(a.operands, args[1:]...)
			return args[1:]
		case a.nextRole() == "args":
			a.operands = append(a.operands, args...)
			return args
		case len(arg) < 2 || arg[0] != '-' && a.find(arg) == nil:
			if style == POSIX || a.runsNext() {
				a.operands = append(a.operands, args...)
				return args
			}
			a.operands = append(a.operands, arg)
			args = args[1:]
		case strings.HasPrefix(arg, "--"), a.profile.Style == Single, a.find(arg) != nil:
			args = a.long(arg, args[1:])
		default:
			args = a.cluster(arg, args[1:])
		}
	}
	return nil
}

// runsNext reports whether the next operand begins a command, or arguments of what is run: their options are not the
// program's.
func (a *arguments) runsNext() bool {
	role := a.nextRole()
	return role == "runs" || role == "args"
}

// nextRole is the name of the role of the next operand, if its place in the row tells it.
func (a *arguments) nextRole() string {
	if roles, n := a.roles(), len(a.operands); n < len(roles) {
		return roles[n].Name
	}
	return ""
}

// find looks an option up by its exact spelling. Abbreviations of long options are not followed: which option one
// stands for depends on all options that a version of a program has.
func (a *arguments) find(spelling string) *Option {
	if o := a.section.Options[spelling]; o != nil {
		return o
	}
	if a.profile.Style == Single && strings.HasPrefix(spelling, "--") {
		if o := a.section.Options[spelling[1:]]; o != nil {
			return o
		}
	}
	if a.profile.Anywhere {
		return a.profile.Sections[""].Options[spelling]
	}
	return nil
}

// long takes an option that is a word of its own.
func (a *arguments) long(arg string, rest []string) []string {
	spelling, value, attached := strings.Cut(arg, "=")
	if whole := a.find(arg); whole != nil {
		spelling, value, attached = arg, "", false
	}
	o := a.find(spelling)
	if o == nil {
		if prefix := a.prefix(arg); prefix != "" {
			a.take(prefix, arg[len(prefix)-1:], true, a.find(prefix))
			return rest
		}
	}
	switch {
	case o == nil && a.profile.Number && shell.IsNumber(arg[1:]):
		return rest
	case o == nil,
		attached && (o.Value == NoValue || o.Value == Ends) && (a.profile.Style != Single || value != "true" && value != "false"):
		a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
		return rest
	case !attached && o.Value == Required:
		if len(rest) == 0 {
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			return nil
		}
		value, attached, rest = rest[0], true, rest[1:]
	}
	if a.profile.Style == Single && a.section.Options[spelling] != o && strings.HasPrefix(spelling, "--") {
		spelling = spelling[1:] // checks and variants know it with one dash
	}
	a.take(spelling, value, attached, o)
	if o.Value == Ends {
		a.behind = rest
		return nil
	}
	return rest
}

// prefix finds the longest option with a star, such as "-W*", that a word begins with; "" if there is none.
func (a *arguments) prefix(arg string) string {
	for n := min(len(arg), maxOption); n > 1; n-- {
		// Not "--ld-path=x" for "-l*": it would be text, and is the program that links.
		if n == 3 && a.profile.Style == Single && strings.HasPrefix(arg, "--") {
			continue
		}
		if spelling := arg[:n] + "*"; a.find(spelling) != nil {
			return spelling
		}
	}
	return ""
}

// cluster takes short options in one word, the last of them perhaps with its value.
func (a *arguments) cluster(arg string, rest []string) []string {
	if a.profile.Number && shell.IsNumber(arg[1:]) {
		return rest
	}
	for i := 1; i < len(arg); i++ {
		spelling := "-" + arg[i:i+1]
		o := a.find(spelling)
		switch {
		case i > maxOption, i+1 < len(arg) && a.find("-"+arg[i:i+2]).means(): // zip -rlf: -l -f, or -lf with a value?
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			return rest
		case o == nil:
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			return rest
		case o.Value == NoValue:
			a.take(spelling, "", false, o)
			continue
		case o.Value == Ends:
			a.take(spelling, "", false, o)
			if i+1 < len(arg) {
				a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
			}
			return nil
		case i+1 < len(arg) && a.profile.Style == Letters:
			a.letters(arg, spelling, arg[i+1:], o)
		case i+1 < len(arg):
			a.take(spelling, arg[i+1:], true, o)
		case o.Value == Optional:
			a.take(spelling, "", false, o)
		case len(rest) == 0:
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
		default:
			a.take(spelling, rest[0], true, o)
			return rest[1:]
		}
		return rest
	}
	return rest
}

// letters takes an option of which the rest of its word is no value to the program, unless it is a number or stands behind
// "=": "mocha -tr/x" loads /x, and would look like a text for -t.
func (a *arguments) letters(arg, spelling, rest string, o *Option) {
	value, assigned := strings.CutPrefix(rest, "=")
	if !assigned && !shell.IsNumber(rest) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
		return
	}
	a.take(spelling, value, true, o)
}

// means reports whether it matters that an option of two letters is there.
func (o *Option) means() bool {
	return o != nil && (o.Value != NoValue || o.Does != nil || o.Operands != nil || o.Follows != "")
}

func (a *arguments) take(spelling, value string, attached bool, o *Option) {
	a.given = append(a.given, given{spelling, value, attached, o})
	if o.Operands != nil {
		a.changed = o.Operands
	}
	for _, e := range o.Does {
		e.Via = spelling
		a.does(e)
	}
	if attached || o.Role.Name == "unknown" {
		a.word(o.Role, value, spelling)
	}
}

// roles are those of the operands, as the options have them.
func (a *arguments) roles() []Role {
	if a.changed != nil {
		return a.changed
	}
	return a.section.Operands
}
