// Package place says what a path is to a tool firewall: part of the workspace, a file that later runs obey,
// a file that other programs run or trust, a secret, or a part of Toolward itself.
//
// Three steps, used in this order by everything that touches files on behalf of an agent:
//
//  1. [Classifier.Resolve] (or [Classifier.ResolveEntry], for removing and renaming) turns the path of a call
//     into the one real path that it means, without symbolic links, and says what is there.
//  2. [Classifier.Classify] gives the [Place] of a real path. It is pure: it looks at names only.
//  3. [Open], [OpenInput], [OpenOutput], [WriteFile], [Remove], [Rename] and [MkdirAll] act on exactly the path that
//     was judged and refuse when a component has become a symbolic link in between.
//
// The names live in one table (table.go). Every doubt is answered by the strictest place: the zero value
// of [Place] is [Self].
package place

import "fmt"

// Place is what a path is. Smaller is stricter, so the zero value is the strictest place.
type Place uint8

// The places, strictest first.
const (
	Self         Place = iota // Toolward's own configuration, state and programs
	Secret                    // credentials and keys
	Protected                 // files that other programs run or trust: shell start-up files, git hooks, editor tasks
	Instructions              // files in the workspace that later runs obey: of agents, builds, tests and installations
	Outside                   // everything else that is not in the workspace
	Workspace                 // the agent's workspace
)

var names = [...]string{"self", "secret", "protected", "instructions", "outside", "workspace"}

// String is the word used in configuration, records and vectors. A value outside the list prints as "self",
// because that is how it must be treated.
func (p Place) String() string {
	if int(p) < len(names) {
		return names[p]
	}
	return names[Self]
}

// Parse is the inverse of String.
func Parse(word string) (Place, error) {
	for i, name := range names {
		if name == word {
			return Place(i), nil
		}
	}
	return Self, fmt.Errorf("unknown place %q: use one of self, secret, protected, instructions, outside, workspace", word)
}

// MarshalText makes a Place its word in JSON.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the word; an unknown word is an error and leaves Self.
func (p *Place) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// Strictest is the place that decides when a call has several targets. Without targets it is Self:
// a call that hides its targets must not be taken for a harmless one.
func Strictest(places ...Place) Place {
	if len(places) == 0 {
		return Self
	}
	strictest := places[0]
	for _, p := range places[1:] {
		strictest = min(strictest, p)
	}
	return strictest
}
