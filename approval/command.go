package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
)

// longestSaving is how long, in characters, the sentence may be that says what "always" adds to the allowlist. Nobody
// can agree to what does not fit the screen.
const longestSaving = 4000

// proposeEntries proposes what the command needs besides what the allowlist says, for this agent; nothing if a word of
// it would have to be hidden, because a secret does not belong into the allowlist.
func (m *Manager) proposeEntries(r *toolward.Request) []Proposal {
	entries := r.Facts.Analysis.Always
	if len(entries) == 0 || m.remember == nil || !oneAgent(r.Call.Caller.Agent) || r.Host() != "" && r.Host() != toolward.HostGateway {
		return nil
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = display.AllowedProgram(e.Pattern, e.Effects, e.Argv)
		if e.Pattern == "" || m.redact(list[i]) != list[i] || slices.ContainsFunc(e.Argv, func(word string) bool { return m.redact(word) != word }) {
			return nil
		}
	}
	where := "on this machine"
	if slices.ContainsFunc(entries, func(e toolward.CommandEntry) bool { return e.Host != "" }) {
		where += ", not in the sandbox of its other commands"
	}
	text := fmt.Sprintf("for agent %s, run without a question %s, in any directory: %s. This has no end date: it holds until "+
		"somebody removes it (toolward approvals allowlist remove)", shown(r.Call.Caller.Agent), where, strings.Join(list, "; "))
	if utf8.RuneCountInString(text) > longestSaving {
		return nil
	}
	return []Proposal{{Scope: ScopeAgent, Match: Match{Kind: toolward.GrantExec, Entries: entries}, Text: text}}
}

// repeatFor is how long a command may be repeated exactly, for people who do not want to extend the allowlist.
const repeatFor = 10 * time.Minute

// proposeExactly proposes the same command again for ten minutes of this session, bound to the programs, scripts,
// directory and environment as they are now: the digests of the call have them. A command whose files could not be bound
// is not offered, because what its words mean may change meanwhile.
func proposeExactly(r *toolward.Request, previewCut bool, s Settings) []Proposal {
	bound := slices.ContainsFunc(r.Facts.Bound, func(b string) bool { return strings.HasPrefix(b, "command ") })
	if !bound || previewCut || r.Call.Session == "" {
		return nil
	}
	life := min(repeatFor, s.SessionGrant)
	a := &Attempt{}
	a.bindExact(r)
	m := Match{Kind: toolward.GrantExact, Digest: a.Digest, Bound: a.Bound}
	return []Proposal{{Scope: ScopeSession, Match: m, LifeMs: life.Milliseconds(), Text: sentence(r, m, ScopeSession, life) +
		". It ends when a program, a script or the environment changes"}}
}

// oneAgent refuses the name that stands for all agents in the allowlist.
func oneAgent(name string) bool { return name != "" && name != "*" }

// outlineOf is what the command would do, with secrets hidden. Words that were expanded may bring secrets that the text
// of the command does not have: what hides in them is refused as in the text.
func (m *Manager) outlineOf(r *toolward.Request) (*display.Outline, error) {
	if m.outline == nil || r.Facts.Command == "" {
		return nil, nil
	}
	hide, hidden := m.hider(r.Facts.Command), false
	clean := m.outline(r).Redacted(func(text string) string {
		shown := hide(text)
		hidden = hidden || hidesSyntax(text, shown)
		return shown
	})
	if hidden {
		return nil, refuseHidden(r)
	}
	return clean, nil
}

// hider hides in parts of a command what is hidden in all of it: a word looks like a password only behind "--password".
func (m *Manager) hider(command string) func(string) string {
	pieces := hiddenPieces(command, m.redact(command))
	return func(text string) string {
		text = m.redact(text)
		for _, piece := range pieces {
			text = strings.ReplaceAll(text, piece, "[hidden: secret]")
		}
		return text
	}
}

// shortestPiece is how long, in bytes, a hidden text must be to be hidden elsewhere, too: a shorter one occurs by chance.
const shortestPiece = 6

// hiddenPieces are the texts that the marks of a redacted text stand for.
func hiddenPieces(text, redacted string) (pieces []string) {
	for i, literal := range literalsOf(redacted) {
		at := strings.Index(text, literal)
		if at < 0 {
			return pieces // not made from this text
		}
		if literal == "" && i > 0 {
			at = len(text) // the end was hidden
		}
		if i > 0 && at >= shortestPiece {
			pieces = append(pieces, text[:at])
		}
		text = text[at+len(literal):]
	}
	return pieces
}

// variablesOf are the names of the environment variables that the call of a command sets.
func variablesOf(r *toolward.Request) []string {
	values, ok := r.Params.Value("env").(map[string]any)
	if !ok || r.Facts.Command == "" || len(values) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(values))
}
