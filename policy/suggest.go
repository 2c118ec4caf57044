package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	Judged   *toolward.Judgement
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
				groups[key] = &repeated{matcher: m, files: map[string]bool{}}
			}
			groups[key].add(c)
		}
	}
	var out []Suggestion
	directories := map[string]int{} // positions in out, by key
	for _, key := range sortedKeys(groups) {
		if g := groups[key]; g.directory != "" && g.enough() && len(g.files) >= enough {
			directories[key] = len(out)
			out = append(out, g.suggestion())
		}
	}
	for _, key := range sortedKeys(groups) {
		g := groups[key]
		if g.directory != "" || !g.enough() {
			continue
		}
		if at, ok := directories[g.directoryKey()]; ok && g.paths != nil {
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
	allowed []int64
	denied  bool
	files   map[string]bool // different targets
}

func (g *repeated) enough() bool { return len(g.allowed) >= enough && !g.denied }

func (g *repeated) add(c *Answered) {
	switch {
	case c.Decision.Allows():
		g.allowed = append(g.allowed, c.Record)
		for _, t := range c.Request.Facts.Targets {
			g.files[t.Real] = true
		}
	case c.Decision == toolward.DenyCall:
		g.denied = true
	}
}

// matcher is what two calls must have in common so that an answer to one says something about the other.
type matcher struct {
	tool, action string
	who          []string // conditions on caller and host
	ops          []string
	paths        []string // exactly these files
	directory    string   // any file below it
	hosts        []string
	recipients   []string
	files        bool // a message carries files
	target       string
	digest       string // exactly this call: no rule can say that
	words        string // for people
}

func (m *matcher) key() string {
	raw, err := json.Marshal([]any{m.tool, m.action, m.who, m.ops, m.paths, m.directory, m.hosts, m.recipients, m.files, m.target, m.digest})
	if err != nil {
		return m.words // cannot be: all of it is text
	}
	return string(raw)
}

// directoryKey is the key of the matcher for the directory of the files.
func (m matcher) directoryKey() string {
	if m.paths == nil {
		return ""
	}
	m.directory, m.paths = path.Dir(m.paths[0]), nil
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
		m.recipients, m.files = distinct(r.Facts.Recipients), len(r.Facts.Targets) > 0
		m.words = "to " + strings.Join(m.recipients, ", ")
	case r.Facts.TargetID != "" && (kind == bySession || kind == byAgent || kind == byNode):
		m.target, m.words = r.Facts.TargetID, fmt.Sprintf("%s %s", kind, r.Facts.TargetID)
	default:
		return nil
	}
	if m.digest == "" && m.when() == "" {
		return nil
	}
	return []matcher{m}
}

// forFiles are the files of a call, and their directory if it is one, and not the workspace itself.
func (m matcher) forFiles(r *toolward.Request) []matcher {
	dir := ""
	for i, t := range r.Facts.Targets {
		if t.Place != place.Workspace.String() || t.Left {
			return nil
		}
		m.ops, m.paths = append(m.ops, string(t.Op)), append(m.paths, t.Real)
		if i == 0 {
			dir = path.Dir(t.Real)
		}
		if path.Dir(t.Real) != dir {
			dir = ""
		}
	}
	if m.paths == nil {
		return nil
	}
	m.ops, m.paths = distinct(m.ops), distinct(m.paths)
	m.words = strings.Join(m.paths, ", ")
	out := []matcher{m}
	if workspace := path.Clean(r.Call.Caller.Workspace); dir != "" && dir != workspace && within(dir, workspace) {
		m.paths, m.directory, m.words = nil, dir, "files below "+dir
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
	}
	if c.Context != "" {
		list = append(list, "caller.context == "+quoteCEL(c.Context))
	}
	if c.Channel != "" {
		list = append(list, "caller.channel == "+quoteCEL(c.Channel), "caller.sender == "+quoteCEL(c.Sender))
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
	case m.directory != "" || m.paths != nil:
		each := "t.real in " + listCEL(m.paths)
		if m.directory != "" {
			each = fmt.Sprintf("pathUnder(t.real, %s)", quoteCEL(m.directory))
		}
		what = append(what, "facts.targets.size() > 0",
			fmt.Sprintf(`facts.targets.all(t, %s && t.op in %s && t.place == "workspace" && !t.left)`, each, listCEL(m.ops)))
	case m.hosts != nil:
		what = append(what, "facts.hosts.size() > 0", fmt.Sprintf("facts.hosts.all(h, h in %s)", listCEL(m.hosts)))
	case m.recipients != nil:
		what = append(what, "facts.recipients.size() > 0", fmt.Sprintf("facts.recipients.all(r, r in %s)", listCEL(m.recipients)))
		if !m.files {
			what = append(what, "facts.targets.size() == 0")
		}
	case m.target != "":
		what = append(what, "facts.target == "+quoteCEL(m.target))
	}
	if m.action == "" {
		what = append(what, `facts.action == ""`)
	}
	return strings.Join(slices.Concat(m.who, what), " && ")
}

func (g *repeated) suggestion() Suggestion {
	s := Suggestion{Records: g.allowed}
	call := g.tool
	if g.action != "" {
		call += " " + g.action
	}
	s.Text = fmt.Sprintf("%s %s, allowed %d times (%s)", call, visible(g.words), len(g.allowed), visible(strings.Join(g.who, ", ")))
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
