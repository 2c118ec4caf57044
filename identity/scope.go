package identity

import (
	"slices"
	"strings"
)

// Role is as what a device connects.
type Role string

// The roles.
const (
	RoleOperator Role = "operator" // a program in front of a person, or one that works for one
	RoleNode     Role = "node"     // another machine on which calls run
)

// Scopes of an operator. A connection that asks for none has none.
const (
	ScopeRead      = "operator.read"
	ScopeWrite     = "operator.write" // includes read
	ScopeApprovals = "operator.approvals"
	ScopePairing   = "operator.pairing"
	ScopeAdmin     = "operator.admin" // includes every operator scope
)

const scopePrefix = "operator."

// Covers reports whether somebody who holds these scopes holds want. A scope that nobody knows is covered by itself
// only, or by operator.admin if it is an operator's.
func Covers(held []string, want string) bool {
	if want == "" {
		return false
	}
	return slices.Contains(held, want) ||
		strings.HasPrefix(want, scopePrefix) && slices.Contains(held, ScopeAdmin) ||
		want == ScopeRead && slices.Contains(held, ScopeWrite)
}

// CoversAll reports whether held covers every scope of want.
func CoversAll(held, want []string) bool {
	for _, scope := range want {
		if !Covers(held, scope) {
			return false
		}
	}
	return true
}

// union adds to held what it lacks of more, sorted and without duplicates.
func union(held, more []string) []string {
	all := slices.Concat(held, more)
	slices.Sort(all)
	return slices.Compact(all)
}
