package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
)

// attemptOf is the request as grants look at it.
func attemptOf(r *toolward.Request, now time.Time) *Attempt {
	c := &r.Call
	return &Attempt{
		Tool: r.Tool.Name, Action: r.Facts.Action, Agent: c.Caller.Agent, Session: c.Session,
		Context: c.Caller.Context, Owner: c.Caller.Owner, Host: r.Host(), Level: r.Level, Workspace: c.Caller.Workspace,
		NowMs: now.UnixMilli(), Targets: r.Facts.Targets, TargetID: r.Facts.TargetID,
		Addresses: addressesOf(r.Facts.Hosts), Recipients: recipientsOf(&r.Facts),
	}
}

// bindExact adds the digests that exact grants compare. They cost a hash, so only calls that an exact grant could
// cover pay for them.
func (a *Attempt) bindExact(r *toolward.Request) {
	a.Digest = r.Params.Digest(r.Tool.Name, r.Call.Caller.Agent, "")
	a.Bound = boundOf(r)
}

// boundOf digests what parameters alone do not fix: the directory that relative paths start from, where the targets
// really are, and what the tool adds, such as the environment of a command. It stops an exact grant from being
// spent in another directory, through a moved link or with another PATH.
func boundOf(r *toolward.Request) string {
	b := make([]byte, 0, 256)
	add := func(text string) {
		b = strconv.AppendInt(b, int64(len(text)), 10)
		b = append(append(b, ':'), text...)
	}
	add(r.Call.WorkDir)
	for _, t := range r.Facts.Targets {
		add(string(t.Op))
		add(t.Real)
	}
	b = append(b, ';')
	for _, text := range r.Facts.Bound {
		add(text)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func addressesOf(hosts []string) []Address {
	var out []Address
	for _, text := range hosts {
		scheme, rest, ok := strings.Cut(text, "://")
		colon := strings.LastIndexByte(rest, ':')
		if !ok || colon < 0 {
			return []Address{{}} // not understood: equal to no grant
		}
		port, err := strconv.Atoi(rest[colon+1:])
		if err != nil {
			return []Address{{}}
		}
		out = append(out, Address{scheme, rest[:colon], port})
	}
	return out
}

func recipientsOf(f *toolward.Facts) []Recipient {
	var out []Recipient
	for _, text := range f.Recipients {
		parts := strings.SplitN(text, ":", 3)
		if len(parts) != 3 {
			return []Recipient{{}} // not understood: equal to no grant
		}
		// The files of a message are its attachments.
		out = append(out, Recipient{Channel: parts[0], Account: parts[1], To: parts[2], Attachments: len(f.Targets) > 0})
	}
	return out
}

// propose lists what "always" could save for a question, the narrowest sensible first; nothing if nothing may be
// saved.
func (m *Manager) propose(q *toolward.Question, previewCut bool, s Settings) []Proposal {
	r := q.Request
	if !q.Judgment.AllowAlways || r.Level == toolward.Lockdown || q.Judgment.Class.Severity == toolward.Critical {
		return nil
	}
	if r.Facts.Analysis != nil {
		entries := m.proposeEntries(r)
		if len(entries) == 0 {
			return nil
		}
		return append(entries, proposeExactly(r, previewCut, s)...)
	}
	var out []Proposal
	for _, m := range matchesFor(r, q.Judgment.Class.Grant, previewCut) {
		for _, scope := range []Scope{ScopeSession, ScopeAgent} {
			if m.check() != nil || m.Kind == toolward.GrantProcess && scope == ScopeAgent {
				continue
			}
			life := s.SessionGrant
			if scope == ScopeAgent {
				life = s.AgentGrant
			}
			out = append(out, Proposal{Scope: scope, Match: m, LifeMs: life.Milliseconds(), Text: sentence(r, m, scope, life)})
		}
	}
	return out
}

func matchesFor(r *toolward.Request, kind toolward.GrantKind, previewCut bool) []Match {
	var exact []Match
	if !previewCut { // nobody can say "exactly this, always" to what they did not see
		a := &Attempt{}
		a.bindExact(r)
		exact = []Match{{Kind: toolward.GrantExact, Digest: a.Digest, Bound: a.Bound}}
	}
	switch kind {
	case toolward.GrantExact, toolward.GrantExec:
		return exact
	case toolward.GrantPath:
		return pathMatches(r)
	case toolward.GrantHost:
		if a := addressesOf(r.Facts.Hosts); len(a) > 0 && allEqual(a) {
			return []Match{{Kind: kind, Scheme: a[0].Scheme, Host: a[0].Host, Port: a[0].Port}}
		}
	case toolward.GrantRecipient:
		if to := recipientsOf(&r.Facts); len(to) > 0 && allEqual(to) {
			return []Match{{
				Kind: kind, Channel: to[0].Channel, Account: to[0].Account, To: to[0].To,
				Thread: to[0].Thread, Attachments: to[0].Attachments,
			}}
		}
	case toolward.GrantSession, toolward.GrantAgent, toolward.GrantNode, toolward.GrantProcess:
		return []Match{{Kind: kind, ID: r.Facts.TargetID}}
	}
	return nil
}

func allEqual[T comparable](list []T) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return v != list[0] })
}

// pathMatches proposes the directory of the files, and the file itself if there is one only.
func pathMatches(r *toolward.Request) []Match {
	targets := r.Facts.Targets
	if len(targets) == 0 {
		return nil
	}
	var ops []toolward.Op
	dir := path.Dir(targets[0].Real)
	for _, t := range targets {
		if !slices.Contains(ops, t.Op) {
			ops = append(ops, t.Op)
		}
		for !isBelow(path.Dir(t.Real), dir) && dir != "/" && dir != "." {
			dir = path.Dir(dir)
		}
	}
	slices.Sort(ops)
	var out []Match
	for _, prefix := range []string{dir, targets[0].Real} {
		m := Match{Kind: toolward.GrantPath, Prefix: prefix, Ops: ops}
		if prefix == targets[0].Real && len(targets) > 1 || tooWide(prefix, r.Call.Caller.Workspace) || !m.coversPaths(targets) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// tooWide reports whether a prefix is the file system, the home directory, or a directory that holds one of them or
// the workspace.
func tooWide(prefix, workspace string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // unknown: the check of the root still holds
	}
	return !isGrantablePrefix(prefix) || isBelow(path.Clean(home), prefix) ||
		workspace != "" && prefix != path.Clean(workspace) && isBelow(path.Clean(workspace), prefix)
}

// sentence says in words what a grant would allow.
func sentence(r *toolward.Request, m Match, scope Scope, life time.Duration) string {
	call := r.Tool.Name
	if r.Facts.Action != "" {
		call += " " + r.Facts.Action
	}
	var b strings.Builder
	switch m.Kind {
	case toolward.GrantExact, toolward.GrantExec:
		if r.Facts.Command != "" {
			fmt.Fprintf(&b, "run exactly this command again in %q, with the same environment", r.Call.WorkDir)
		} else {
			fmt.Fprintf(&b, "repeat exactly this %s call", call)
		}
	case toolward.GrantPath:
		fmt.Fprintf(&b, "%s may %s %q", call, opWords(m.Ops), m.Prefix)
		if len(r.Facts.Targets) > 1 || m.Prefix != r.Facts.Targets[0].Real {
			b.WriteString(" and everything below it, except instructions, protected and secret files")
		}
	case toolward.GrantHost:
		fmt.Fprintf(&b, "%s may contact %s://%s:%d, no other host, port or subdomain", call, m.Scheme, shown(m.Host), m.Port)
	case toolward.GrantRecipient:
		fmt.Fprintf(&b, "%s may write to %s on %s", call, shown(m.To), shown(m.Channel))
		if m.Account != "" {
			fmt.Fprintf(&b, " (account %s)", shown(m.Account))
		}
		if m.Attachments {
			b.WriteString(", with attachments")
		}
	default:
		fmt.Fprintf(&b, "%s may be aimed at %s %s", call, m.Kind, shown(m.ID))
	}
	b.WriteString(", on " + shown(string(cmp.Or(r.Host(), toolward.HostGateway))))
	if scope == ScopeSession {
		fmt.Fprintf(&b, ", in this session only, for %s", lifeWords(life))
	} else {
		fmt.Fprintf(&b, ", in every %s session of agent %s, for %s", shown(cmp.Or(r.Call.Caller.Context, "such")), shown(r.Call.Caller.Agent), lifeWords(life))
	}
	if r.Call.Caller.Owner {
		b.WriteString(", only for calls of the owner")
	}
	if r.Level == toolward.Normal {
		b.WriteString(", only while the session is normal")
	} else {
		b.WriteString(", also while the session is elevated, not in lockdown")
	}
	return b.String()
}

// shown quotes a name that is not plain, so that invisible and direction-changing characters are seen.
func shown(text string) string {
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` || text == "" || strings.ContainsAny(text, " ,") {
		return quoted
	}
	return text
}

func opWords(ops []toolward.Op) string {
	words := make([]string, len(ops))
	for i, op := range ops {
		words[i] = string(op)
	}
	return strings.Join(words, ", ")
}

func lifeWords(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return d.String()
}

// grantFrom makes the grant that a person chose. Everything in it comes from what was shown.
func grantFrom(d *Details, p Proposal, by string, now time.Time) *Grant {
	g := &Grant{
		ID: newID(), Tool: d.Tool, Agent: d.Agent, Scope: p.Scope, Session: d.Session, Contexts: []string{d.Context},
		OwnerOnly: d.Owner, Host: d.Host, MaxLevel: d.Level, Match: p.Match, Workspace: d.Workspace, Text: p.Text,
		CreatedMs: now.UnixMilli(), CreatedBy: by, ExpiresMs: now.UnixMilli() + p.LifeMs, MaxUses: p.MaxUses,
	}
	if d.Action != "" {
		g.Actions = []string{d.Action}
	}
	if p.Match.Kind == toolward.GrantExact {
		// The question showed the call beside "exactly this"; a list of grants has to bring it along.
		g.Text += ": " + cut(cmp.Or(d.Command, string(d.Preview)), longestReason)
	}
	return g
}
