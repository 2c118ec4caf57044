package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Answered is a recorded call that people answered.
type Answered struct {
	Record   int64
	Request  *toolward.Request
	Judged   *toolward.Judgment
	Digest   string // of the call
	Decision toolward.Decision
}

// Suggestion is what would spare people a question that they answered with yes again and again.
type Suggestion struct {
	Rule    *Rule   `json:"rule,omitempty"` // for teg.rules; nil if no rule can cover exactly that
	Text    string  `json:"text"`           // what was allowed, in words
	Records []int64 `json:"records"`        // of the calls that people allowed
	// Narrower is what to suggest in its place if it turns out to cover calls that people did not allow.
	Narrower []Suggestion `json:"-"`
}

// enough is how often people must have allowed a call before anything is suggested.
const enough = 3

// Suggest finds what people allowed at least three times and never denied. A suggestion covers the same agent, owner,
// conversation context, host, workspace, tool and action, and what was allowed: exactly these files, this address, this
// recipient. Only for different files of one directory, of which at least three were allowed, it is the directory.
// Nothing is suggested for what is critical, for what a finding asks about, or for another level than normal.
func Suggest(calls []Answered) []Suggestion {
	groups := map[string]*repeated{}
	for i := range calls {
		c := &calls[i]
		for _, m := range matchersOf(c) {
			key := m.key()
			if groups[key] == nil {
				groups[key] = &repeated{matcher: m, different: map[string]bool{}}
			}
			groups[key].add(c)
		}
	}
	var out []Suggestion
	directories := map[string]int{} // positions in out, by key
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[key]; g.directory != "" && g.enough() && len(g.different) >= enough {
			directories[key] = len(out)
			out = append(out, g.suggestion())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		if g.directory != "" || !g.enough() {
			continue
		}
		if at, ok := directories[g.directoryKey()]; ok && g.files != nil {
			out[at].Narrower = append(out[at].Narrower, g.suggestion())
			continue
		}
		out = append(out, g.suggestion())
	}
	return nameRules(out)
}

// nameRules gives every rule a name of its own, the most useful first.
func nameRules(list []Suggestion) []Suggestion {
	slices.SortStableFunc(list, func(a, b Suggestion) int { return cmp.Compare(len(b.Records), len(a.Records)) })
	n := 0
	name := func(s *Suggestion) {
		if s.Rule != nil {
			n++
			s.Rule.Name = fmt.Sprintf("suggested-%d", n)
		}
	}
	for i := range list {
		name(&list[i])
		for j := range list[i].Narrower {
			name(&list[i].Narrower[j])
		}
	}
	return list
}

// repeated is calls of one kind.
type repeated struct {
	matcher
	allowed   []int64
	denied    bool
	different map[string]bool // targets
}

func (g *repeated) enough() bool { return len(g.allowed) >= enough && !g.denied }

func (g *repeated) add(c *Answered) {
	switch {
	case c.Decision.Allows():
		g.allowed = append(g.allowed, c.Record)
		for _, t := range c.Request.Facts.Targets {
			g.different[t.Real] = true
		}
	case c.Decision == toolward.DenyCall:
		g.denied = true
	}
}

// matcher is what two calls must have in common so that an answer to one says something about the other.
type matcher struct {
	tool, action string
	who          []string // conditions on caller and host
	ops          []string // with directory
	directory    string   // any file below it
	files        []use    // exactly these
	hosts        []string
	recipients   []string
	target       string
	digest       string // exactly this call: no rule can say that
	words        string // for people
}

// use is what is done to a file: that people let one file be read says nothing about writing it.
type use struct{ Op, Path string }

func (m *matcher) key() string {
	raw, err := json.Marshal([]any{m.tool, m.action, m.who, m.ops, m.directory, m.files, m.hosts, m.recipients, m.target, m.digest})
	if err != nil {
		return m.words // cannot be: all of it is text
	}
	return string(raw)
}

// directoryKey is the key of the matcher for the directory of the files.
func (m matcher) directoryKey() string {
	if m.files == nil {
		return ""
	}
	m.directory, m.ops, m.files = path.Dir(m.files[0].Path), m.operations(), nil
	return m.key()
}

// matchersOf says as what a call counts; nothing if no remembered answer may cover it.
func matchersOf(c *Answered) []matcher {
	r, j := c.Request, c.Judged
	if r.Tool == nil || j == nil || j.Verdict != toolward.Ask || !j.GrantOK || j.Class.Severity == toolward.Critical || r.Level == toolward.Lockdown {
		return nil
	}
	m := matcher{tool: r.Tool.Name, action: r.Facts.Action, who: conditionsOf(r)}
	rules := j.Class.Class == toolward.NeedsApproval && r.Level == toolward.Normal // what a rule can lower
	switch kind := j.Class.Grant; {
	case kind == byProcess:
		return nil // a process ends, and a rule would be about the next one of its number
	case !rules, kind == exact, kind == byExec:
		m.digest, m.words = c.Digest, "exactly the same call"
	case kind == byPath:
		return m.forFiles(r)
	case kind == byHost && len(r.Facts.Hosts) > 0:
		m.hosts, m.words = distinct(r.Facts.Hosts), strings.Join(distinct(r.Facts.Hosts), ", ")
	case kind == byRecipient && len(r.Facts.Recipients) > 0:
		m.recipients = distinct(r.Facts.Recipients)
		m.words = "to " + strings.Join(m.recipients, ", ")
	case r.Facts.TargetID != "" && (kind == bySession || kind == byAgent || kind == byNode):
		m.target, m.words = r.Facts.TargetID, fmt.Sprintf("%s %s", kind, r.Facts.TargetID)
	default:
		return nil
	}
	if m.digest == "" {
		if !m.take(r.Facts.Targets) {
			return nil
		}
		if m.files != nil {
			m.words += " with " + m.paths()
		}
	}
	return []matcher{m}
}

// take notes the files of a call. It reports false if there is one that no remembered answer may be about.
func (m *matcher) take(targets []toolward.Target) bool {
	for _, t := range targets {
		if t.Zone != toolward.ZoneWorkspace || t.Left {
			return false
		}
		m.files = append(m.files, use{string(t.Op), t.Real})
	}
	slices.SortFunc(m.files, func(a, b use) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Op, b.Op)) })
	m.files = slices.Compact(m.files)
	return true
}

func (m *matcher) operations() (ops []string) {
	for _, f := range m.files {
		ops = append(ops, f.Op)
	}
	return distinct(ops)
}

func (m *matcher) paths() string {
	var paths []string
	for _, f := range m.files {
		paths = append(paths, f.Path)
	}
	return strings.Join(distinct(paths), ", ")
}

// forFiles are the files of a call, and their directory if it is one, and not the workspace itself.
func (m matcher) forFiles(r *toolward.Request) []matcher {
	if !m.take(r.Facts.Targets) || m.files == nil {
		return nil
	}
	m.words = m.paths()
	out := []matcher{m}
	dir := path.Dir(m.files[0].Path)
	elsewhere := slices.ContainsFunc(m.files, func(f use) bool { return path.Dir(f.Path) != dir })
	if workspace := path.Clean(r.Call.Caller.Workspace); !elsewhere && dir != workspace && place.Within(dir, workspace) {
		m.ops, m.files, m.directory, m.words = m.operations(), nil, dir, "files below "+dir
		out = append(out, m)
	}
	return out
}

func distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// conditionsOf are those on caller and host: an answer says nothing about another agent, its sub-agents, another
// workspace, or a call that is not the owner's.
func conditionsOf(r *toolward.Request) []string {
	c := &r.Call.Caller
	list := []string{
		"caller.agent == " + quoteCEL(c.Agent), fmt.Sprintf("caller.depth == %d", c.Depth),
		"caller.workspace == " + quoteCEL(c.Workspace), "caller.host == " + quoteCEL(string(r.Call.Host)),
		// "" too says where it came from: what a person allowed to a program is not allowed to everybody who writes in a chat.
		"caller.context == " + quoteCEL(c.Context), "caller.channel == " + quoteCEL(c.Channel),
	}
	if c.Channel != "" {
		list = append(list, "caller.sender == "+quoteCEL(c.Sender))
	}
	if c.Owner {
		list = append(list, "caller.owner")
	}
	return list
}

// when is the condition of the rule.
func (m *matcher) when() string {
	var what []string
	switch {
	case m.hosts != nil:
		what = append(what, "facts.hosts.size() > 0", fmt.Sprintf("facts.hosts.all(h, h in %s)", listCEL(m.hosts)))
	case m.recipients != nil:
		what = append(what, "facts.recipients.size() > 0", fmt.Sprintf("facts.recipients.all(r, r in %s)", listCEL(m.recipients)))
	case m.target != "":
		what = append(what, "facts.target == "+quoteCEL(m.target))
	}
	switch {
	case m.directory != "":
		what = append(what, "facts.targets.size() > 0", fmt.Sprintf(`facts.targets.all(t, pathUnder(t.real, %s) && t.op in %s && t.place == "workspace" && !t.left)`,
			quoteCEL(m.directory), listCEL(m.ops)))
	case m.files != nil:
		what = append(what, "facts.targets.size() > 0", fmt.Sprintf(`facts.targets.all(t, (%s) && t.place == "workspace" && !t.left)`, m.uses()))
	default:
		what = append(what, "facts.targets.size() == 0")
	}
	if m.action == "" {
		what = append(what, `facts.action == ""`)
	}
	return strings.Join(slices.Concat(m.who, what), " && ")
}

// uses is the condition on one target that it is one of the files, and that the same is done to it.
func (m *matcher) uses() string {
	var each []string
	for _, op := range m.operations() {
		var paths []string
		for _, f := range m.files {
			if f.Op == op {
				paths = append(paths, f.Path)
			}
		}
		each = append(each, fmt.Sprintf("t.op == %s && t.real in %s", quoteCEL(op), listCEL(paths)))
	}
	return strings.Join(each, " || ")
}

func (g *repeated) suggestion() Suggestion {
	s := Suggestion{Records: g.allowed}
	call := g.tool
	if g.action != "" {
		call += " " + g.action
	}
	s.Text = fmt.Sprintf("%s %s, allowed %d times (%s)", call, printable(g.words), len(g.allowed), printable(strings.Join(g.who, ", ")))
	if g.digest == "" {
		s.Rule = &Rule{
			Tool: g.tool, Action: g.action, When: g.when(), Then: ThenAllow.String(),
			Reason: fmt.Sprintf("people allowed it %d times and never denied it", len(g.allowed)),
		}
	}
	return s
}

// quoteCEL writes a text as CEL and JSON read it.
func quoteCEL(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""` // cannot be: a text can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func listCEL(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = quoteCEL(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
