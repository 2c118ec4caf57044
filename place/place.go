// Package place says what a path is to a tool firewall: part of the workspace, a file that later runs obey,
// a file that other programs run or trust, a secret, or a part of Toolward itself.
//
// Three steps, used in this order by everything that touches files on behalf of an agent:
//
//  1. [Classifier.Resolve] (or [Classifier.ResolveEntry], for removing and renaming) turns the path of a call
//     into the one real path that it means, without symbolic links, and says what is there.
//  2. [Classifier.Classify] gives the [Zone] of a real path. It is pure: it looks at names only.
//  3. [Open], [OpenInput], [OpenOutput], [WriteFile], [Remove], [Rename] and [MkdirAll] act on exactly the path that
//     was judged and refuse when a component has become a symbolic link in between.
//
// The names live in one table (table.go). Every doubt is answered by the strictest zone: the zero value
// of [Zone] is [Self].
package place

import "fmt"

// Zone is what a path is. Smaller is stricter, so the zero value is the strictest zone.
type Zone uint8

// The zones, strictest first.
const (
	Self         Zone = iota // Toolward's own configuration, state and programs
	Secret                   // credentials and keys
	Protected                // files that other programs run or trust: shell start-up files, git hooks, editor tasks
	Instructions             // files in the workspace that later runs obey: of agents, builds, tests and installations
	Outside                  // everything else that is not in the workspace
	Workspace                // the agent's workspace
)

var names = [...]string{"self", "secret", "protected", "instructions", "outside", "workspace"}

// String is the word used in configuration, records and vectors. A value outside the list prints as "self",
// because that is how it must be treated.
func (z Zone) String() string {
	if int(z) < len(names) {
		return names[z]
	}
	return names[Self]
}

// Parse is the inverse of String.
func Parse(word string) (Zone, error) {
	for i, name := range names {
		if name == word {
			return Zone(i), nil
		}
	}
	return Self, fmt.Errorf("unknown place %q: use one of self, secret, protected, instructions, outside, workspace", word)
}

// MarshalText makes a Zone its word in JSON.
func (z Zone) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// UnmarshalText reads the word; an unknown word is an error and leaves Self.
func (z *Zone) UnmarshalText(text []byte) (err error) {
	*z, err = Parse(string(text))
	return err
}
