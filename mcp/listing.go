package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolward/toolward/schema"
)

// Launch is how a foreign server is reached: by a command that speaks over its standard input and output, or at an
// address.
type Launch struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // what is set beside the environment it inherits
	Dir     string            `json:"dir,omitempty"` // working directory
	URL     string            `json:"url,omitempty"`
}

// Digest names a launch: SHA-256, lower hex. The values of variables may be secrets; only the digest is kept.
func (l Launch) Digest() string {
	text, err := schema.Canonical(l)
	if err != nil {
		// Text that is not UTF-8 has no canonical form. No digest equals this one, so that nothing is accepted.
		return "none: " + err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Acceptance is what a person accepted of one server.
type Acceptance struct {
	Server string
	Launch string            // digest of how the server is reached
	Tools  map[string]string // the server's name of a tool → digest of its definition
	By     string
	AtMs   int64
}

// AcceptanceStore keeps acceptances, one for each server; a later one replaces the earlier. Package store implements
// it.
type AcceptanceStore interface {
	Acceptances(context.Context) ([]Acceptance, error)
	// Accept has reached the disk when it returns.
	Accept(context.Context, Acceptance) error
}

// ToolState says how a listed tool stands to what was accepted. The zero value is not accepted.
type ToolState string

// The states.
const (
	StateNew      ToolState = "new"
	StateChanged  ToolState = "changed" // accepted in another form
	StateAccepted ToolState = "accepted"
)

// ListedTool is a definition with its state.
type ListedTool struct {
	Definition
	State ToolState
}

// Listing is what a server lists, ready to be looked at and accepted.
type Listing struct {
	Server   string
	Digest   string // over the launch and all definitions, rejected ones too
	Tools    []ListedTool
	Rejected []Rejected
}

// newListing reads a list. A tool that cannot be one of Toolward's is rejected alone; so are all tools whose names
// differ in case only, because nothing says which of them a call means.
func newListing(s Upstream, pages []json.RawMessage, checkName func(name, server string) error) (Listing, error) {
	l := Listing{Server: s.ID}
	if err := checkServer(s.ID); err != nil {
		return l, err
	}
	raws, err := readPages(pages)
	if err != nil {
		return l, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n", s.Launch.Digest())
	count := map[string]int{}
	for _, raw := range raws {
		d, err := readDefinition(s.ID, raw, checkName)
		fmt.Fprintf(sum, "%s\n", d.Digest) // "" for what could not be read, and is rejected
		if err != nil {
			l.Rejected = append(l.Rejected, Rejected{d.Native, err.Error()})
			continue
		}
		count[d.Name]++
		l.Tools = append(l.Tools, ListedTool{Definition: d, State: StateNew})
	}
	l.Tools = slices.DeleteFunc(l.Tools, func(t ListedTool) bool {
		if count[t.Name] > 1 {
			l.Rejected = append(l.Rejected, Rejected{t.Native, "the server lists several tools of this name"})
			return true
		}
		return false
	})
	l.Digest = hex.EncodeToString(sum.Sum(nil))
	return l, nil
}

func (l Listing) clone() Listing {
	l.Tools, l.Rejected = slices.Clone(l.Tools), slices.Clone(l.Rejected)
	return l
}
