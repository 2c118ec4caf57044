package visible

import "slices"

// restriction is what a scope restricts: an allow list (nil or empty: everything) and a deny list.
type restriction struct {
	Allow []string `json:"allow,omitzero"`
	Deny  []string `json:"deny,omitzero"`

	// Optional is of ceilings only: the entries by which the parent's own lists name optional tools. Nil says nothing
	// about such tools; an empty list leaves none of them.
	Optional []string `json:"optional,omitzero"`
}

// contradicts reports whether a scope has both kinds of allow lists: one says "nothing else", the other "besides all
// else".
func (l Lists) contradicts() bool { return len(l.Allow) > 0 && len(l.AlsoAllow) > 0 }

// restriction turns a scope into what it restricts; ok is false if there is nothing. alsoAllow alone never restricts.
func (l Lists) restriction() (r restriction, ok bool) {
	r = restriction{Allow: l.Allow, Deny: l.Deny}
	if len(l.AlsoAllow) > 0 {
		base := l.Allow
		if len(base) == 0 {
			base = []string{"*"}
		}
		r.Allow = union(base, l.AlsoAllow)
	}
	return r, r.Allow != nil || r.Deny != nil
}

// union is the entries of both lists in order, each once.
func union(a, b []string) []string {
	out := make([]string, 0, len(a)+len(b))
	for _, entry := range slices.Concat(a, b) {
		if !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return out
}
