package binding

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/envname"
	"github.com/toolward/toolward/schema"
)

// bindingVersion is that of the present form of [Binding]. Approvals of another form match nothing.
const bindingVersion = 1

// Binding is what an approval of a command holds on to. Just before the command starts it is made anew and compared
// field by field: what was approved is what runs. That an approval is used once is the business of package approval.
type Binding struct {
	Version int    `json:"version"`
	Host    string `json:"host,omitempty"`
	Node    string `json:"nodeId,omitempty"`
	Agent   string `json:"agentId,omitempty"`
	Session string `json:"sessionKey,omitempty"`

	// Text is the whole command, set where a shell runs it as it was written.
	Text     string         `json:"text,omitempty"`
	Commands []BoundCommand `json:"commands,omitempty"`

	Dir         string `json:"cwd,omitempty"` // real path
	DirIdentity string `json:"cwdIdentity,omitempty"`

	EnvHash  string   `json:"envHash,omitempty"` // of what the call sets; "": nothing
	EnvNames []string `json:"envKeys,omitempty"` // for people; values are only in the hash

	// Files are those that the text names where nobody knows what it comes to.
	Files []BoundFile `json:"files,omitempty"`

	left []string // what the programs may load besides, for people
}

// Left says what the command may load and nothing holds to what was approved, for people.
func (b *Binding) Left() []string { return b.left }

func (b *Binding) leave(left []string) {
	for _, what := range left {
		if !slices.Contains(b.left, what) {
			b.left = append(b.left, what)
		}
	}
}

// BoundCommand is one program of the command, with its arguments.
type BoundCommand struct {
	Argv       []string         `json:"argv"`
	Executable *BoundExecutable `json:"executable,omitempty"`
	Files      []BoundFile      `json:"files,omitempty"`
}

// BoundExecutable is the program itself. Identity is its content, or what stands for it; see [BoundFile].
type BoundExecutable struct {
	Path     string `json:"path"`     // as it was found
	RealPath string `json:"realPath"` // behind all links
	Identity string `json:"identity,omitempty"`
}

// BoundFile is a file that the program loads or runs. Up to [BoundBytes] its content is bound by SHA256, beside its rights; a longer one by
// its Identity: device, inode, size, mode and times, which every change of the content changes.
type BoundFile struct {
	ArgvIndex int    `json:"argvIndex"`
	Path      string `json:"path"` // real path
	SHA256    string `json:"sha256,omitempty"`
	Rights    string `json:"rights,omitempty"` // mode and owner, beside SHA256
	Identity  string `json:"identity,omitempty"`
}

// The codes of Drift.
const (
	CodeRequestMismatch   = "APPROVAL_REQUEST_MISMATCH"
	CodeEnvBindingMissing = "APPROVAL_ENV_BINDING_MISSING"
	CodeEnvMismatch       = "APPROVAL_ENV_MISMATCH"
	CodeExecutableDrift   = "APPROVAL_EXECUTABLE_DRIFT"
	CodeFileDrift         = "APPROVAL_FILE_DRIFT"
)

// Drift says what is not as it was approved.
type Drift struct {
	Code string
	What string // for people: "working directory"
}

func (d *Drift) Error() string { return d.Code + ": the " + d.What + " is not what was approved" }

// Check compares what is about to run with what was approved. The error is a *[Drift] for the first difference. A
// binding that is missing, of another version, or of no command matches nothing.
func (b *Binding) Check(now *Binding) error {
	switch {
	case b == nil || now == nil || b.Version != bindingVersion || now.Version != bindingVersion:
		return &Drift{CodeRequestMismatch, "form of the approval"}
	case !slices.EqualFunc(b.Commands, now.Commands, func(x, y BoundCommand) bool { return slices.Equal(x.Argv, y.Argv) }), b.empty():
		return &Drift{CodeRequestMismatch, "command"}
	case b.Text != now.Text:
		return &Drift{CodeRequestMismatch, "text of the command"}
	case b.Dir != now.Dir || b.DirIdentity != now.DirIdentity:
		return &Drift{CodeRequestMismatch, "working directory"}
	case b.Agent != now.Agent || b.Session != now.Session:
		return &Drift{CodeRequestMismatch, "agent or session"}
	case b.Host != now.Host || b.Node != now.Node:
		return &Drift{CodeRequestMismatch, "host"}
	case b.EnvHash == "" && now.EnvHash != "":
		return &Drift{CodeEnvBindingMissing, "environment"}
	case b.EnvHash != now.EnvHash:
		return &Drift{CodeEnvMismatch, "environment"}
	}
	for i := range b.Commands {
		if err := b.Commands[i].check(&now.Commands[i]); err != nil {
			return err
		}
	}
	if !slices.Equal(b.Files, now.Files) {
		return &Drift{CodeFileDrift, "content or place of a file that the command names"}
	}
	return nil
}

// empty reports whether there is nothing that could run.
func (b *Binding) empty() bool {
	return b.Text == "" && len(b.Commands) == 0 ||
		slices.ContainsFunc(b.Commands, func(c BoundCommand) bool { return len(c.Argv) == 0 })
}

func (c *BoundCommand) check(now *BoundCommand) error {
	same := c.Executable == now.Executable ||
		c.Executable != nil && now.Executable != nil && *c.Executable == *now.Executable
	switch {
	case !same:
		return &Drift{CodeExecutableDrift, "program " + c.Argv[0]}
	case !slices.Equal(c.Files, now.Files):
		return &Drift{CodeFileDrift, "content or place of a file that " + c.Argv[0] + " loads"}
	}
	return nil
}

// Digest is a short name for the binding that people can compare: hex SHA-256 of all that is bound.
func (b *Binding) Digest() string {
	encoded, err := schema.Canonical(b)
	if err != nil {
		encoded = fmt.Appendf(nil, "%#v", *b) // argv that is not UTF-8 has no JSON
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// EnvironmentHash binds an approval to the values that a call sets: SHA-256, lower hex, over the JSON list of
// [name, value] in byte order of the names, which are trimmed. Without any it is "". Only the names are shown to people.
func EnvironmentHash(env map[string]string) (hash string, names []string) {
	values := map[string]string{}
	for _, given := range slices.Sorted(maps.Keys(env)) {
		if name := strings.TrimSpace(given); envname.Portable(name) {
			values[name] = env[given] // white space sorts first: the exact name, which is the one that counts, wins
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	names = slices.Sorted(maps.Keys(values))
	pairs := make([]any, len(names))
	for i, name := range names {
		pairs[i] = []any{name, values[name]}
	}
	encoded, err := schema.Canonical(pairs)
	prefix := ""
	if err != nil {
		// Bytes that are not UTF-8 have no JSON. They never come out of decoded arguments, but must stay bound.
		encoded, prefix = fmt.Appendf(nil, "%q", pairs), "raw-"
	}
	sum := sha256.Sum256(encoded)
	return prefix + hex.EncodeToString(sum[:]), names
}
