package profiles

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/toolward/toolward/shell"
)

// Profile is what is known of one program: its options, its subcommands and what each of them does. Profiles are
// data, in the files beside this one; docs/profiles.md tells how they are written.
type Profile struct {
	Names    []string            // the program and its other names
	Style    Style               // how it reads its arguments
	Number   bool                // "-20" is an option
	Anywhere bool                // its own options may stand after a subcommand, too
	Sections map[string]*Section // by the words of the subcommand; "" is the program itself
	File     string              // where the profile stands
	Source   string              // its lines there, without what it shares with others
}

// Style is how a program reads its arguments.
type Style string

// The styles.
const (
	GNU     Style = "gnu"     // options and operands mixed; short options in clusters, long ones with two dashes
	POSIX   Style = "posix"   // as gnu, but the first operand ends the options
	Single  Style = "single"  // long options with one dash or two, no clusters; options and operands mixed
	Bundle  Style = "bundle"  // as gnu, but the first word may be short options without a dash, their values following in turn
	Letters Style = "letters" // as gnu, but nothing is glued to a short option: "-tr" is -t and -r
	Raw     Style = "raw"     // no options: all words are operands, or a language of its own, which a check reads
)

// Section is a program or one of its subcommands.
type Section struct {
	Command  string             // words of the subcommand, such as "stash push"; "" for the program itself; "*" for all others
	Options  map[string]*Option // by spelling, dashes included; "-W*" is any word that begins with "-W"
	Operands []Role
	Else     []Variant      // other operands, if certain options are given
	Default  []shell.Effect // if there are no operands
	Does     []shell.Effect // always
	Checks   []string       // functions that look closer
	Leads    bool           // its options stand before further words of the subcommand: docker compose -f x ps
}

// Variant is what operands mean in the presence of options.
type Variant struct {
	Options  []string
	Operands []Role
}

// Option is one option.
type Option struct {
	Value    Value
	Role     Role           // what its value is
	Does     []shell.Effect // what it does by itself
	Operands []Role         // what it makes of the operands; nil: nothing
	Follows  shell.Kind     // Reads or Writes: by these, symbolic links that lie below the operands are followed
}

// Value says whether an option has a value.
type Value uint8

// The kinds of values.
const (
	NoValue  Value = iota
	Required       // attached, or the next word
	Optional       // attached only
	Ends           // none, and what follows belongs to the program that is run
)

// Role is what a word means to a program.
type Role struct {
	Name  string // one of roleNames
	Lang  string // of program text
	Many  bool   // any number, none too
	Maybe bool   // may be missing
}

//go:embed *.txt
var profileFiles embed.FS

// byName reads the files once. A file that is wrong stops the program: without its profile a program would fall
// back to the plain path rule. A test reads them all.
var byName = sync.OnceValue(func() map[string]*Profile {
	all := map[string]*Profile{}
	files, err := profileFiles.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		text, err := profileFiles.ReadFile(f.Name())
		if err != nil {
			panic(err)
		}
		parsed, err := parseProfiles(f.Name(), string(text))
		if err != nil {
			panic(err)
		}
		for _, p := range parsed {
			for _, name := range p.Names {
				if all[name] != nil {
					panic(fmt.Sprintf("%s: %s has a profile already, in %s", f.Name(), name, all[name].File))
				}
				all[name] = p
			}
		}
	}
	return all
})

// All lists all profiles by the first of their names.
func All() []*Profile {
	all := slices.Collect(maps.Values(byName()))
	slices.SortFunc(all, func(a, b *Profile) int { return strings.Compare(a.Names[0], b.Names[0]) })
	return slices.Compact(all)
}

// Of finds the profile of a program by its name or path; nil if there is none. A version at the end of the name
// does not matter: python3.12 is python3.
func Of(program string) *Profile {
	name := path.Base(program)
	if p := byName()[name]; p != nil {
		return p
	}
	return byName()[strings.TrimRight(name, "-.0123456789")]
}

// Effects says what a program does with these arguments, as far as they tell. known is false for programs without a
// profile, of which nothing is known.
func Effects(program string, args []string) (effects []shell.Effect, known bool) {
	p := Of(program)
	if p == nil {
		return nil, false
	}
	return p.Effects(args), true
}
