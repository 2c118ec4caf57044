package trial

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/transcript"
)

// Price is what the calls of past sessions would have met.
type Price struct {
	Transcripts transcript.Seen `json:"transcripts"`
	Clients     []*ClientPrice  `json:"clients"`
	Sessions    int             `json:"sessions"`
	Calls       int             `json:"calls"`
	From        time.Time       `json:"from,omitzero"`
	To          time.Time       `json:"to,omitzero"`
	Nowhere     int             `json:"directoryNotKnown,omitempty"` // calls of which no transcript says where they were made
	NotJudged   []Counted       `json:"notJudged,omitempty"`         // calls that cannot be put to a gateway, with the reason
	Policies    []*PolicyPrice  `json:"policies"`
}

// ClientPrice is what is counted of one client.
type ClientPrice struct {
	Client   string `json:"client"`
	Title    string `json:"title"`
	Sessions int    `json:"sessions"`
	Calls    int    `json:"calls"`
}

// Counted is a text with how often it was met.
type Counted struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// PolicyPrice is what one policy would have said of the calls.
type PolicyPrice struct {
	Policy     string     `json:"policy"`
	Sandboxing string     `json:"sandboxing,omitempty"` // whether its settings put commands into sandboxes; "on" if of any session
	Ran        Ran        `json:"ran"`
	Asked      int        `json:"asked"`
	Refused    int        `json:"refused"`
	Commands   Commands   `json:"commands"`
	Unknown    int        `json:"unknownTool"` // calls of tools that no table describes: they ask
	Reasons    []Reason   `json:"reasons"`
	Remedies   []Remedy   `json:"remedies"`
	Stopped    []*Stopped `json:"stopped"`
	Left       int        `json:"stoppedNotShown,omitempty"`
}

// Ran is how many calls would have run without a question, and where.
type Ran struct {
	Inside int `json:"inside"`
	OnHost int `json:"host"`
}

// Commands are the commands alone, as if sandboxing were on, and as if it were off.
type Commands struct {
	Total  int    `json:"total"`
	Inside Column `json:"sandboxingOn"`
	OnHost Column `json:"sandboxingOff"`
}

// Column is what would have been said of commands.
type Column struct {
	Run     int `json:"run"`
	Asked   int `json:"asked"`
	Refused int `json:"refused"`
}

func (c *Column) add(verdict toolward.Verdict) {
	switch verdict {
	case toolward.Allow:
		c.Run++
	case toolward.Ask:
		c.Asked++
	default:
		c.Refused++
	}
}

// Sessions says which sessions of the past are meant, and how much of them is told.
type Sessions struct {
	Paths  []string // files and directories; none: where clients keep their transcripts on this machine
	Client string   // "" for all
	Since  time.Time
	Most   int // of what would have been stopped are told; the counts are of all
}

// TranscriptClients lists the clients whose transcripts are read, by name.
func TranscriptClients() []string { return transcript.Clients() }

// OpenPrice is [Open] for [PriceOf]. Without a file and without one in the home it is the configuration that install proposes.
func OpenPrice(home, file string) (*Candidate, error) {
	around := gateway.Surroundings()
	around.Secrets, around.Recipients = redact.New(), policy.PastRecipients{}
	c, err := open(home, file, around)
	if err != nil || file != "" || c.loaded.Source != nil {
		return c, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	proposed, err := proposed(home)
	if err != nil {
		return nil, err
	}
	return openLoaded(home, proposed, around)
}

// proposed is the configuration that install proposes, as if every client had been installed so.
func proposed(home string) (*config.Loaded, error) {
	const name = "what install proposes (there is no configuration yet)"
	var source []byte
	loaded, err := gateway.Parse(home, name, source)
	for _, client := range transcript.Clients() {
		if err != nil {
			return nil, err
		}
		if source, _, err = config.Proposed.Write(source, &loaded.File, client); err == nil {
			loaded, err = gateway.Parse(home, name, source)
		}
	}
	return loaded, err
}

// PriceOf judges the calls of past sessions with each candidate, side by side. It asks nobody and runs nothing.
func PriceOf(ctx context.Context, candidates []*Candidate, of Sessions) (_ *Price, err error) {
	p := &pricing{price: &Price{}, of: of, sessions: map[[2]string]bool{}, notJudged: map[string]int{}}
	defer func() { err = errors.Join(err, p.close()) }()
	for _, c := range candidates {
		judge, err := newJudge(c)
		if err != nil {
			return nil, err
		}
		p.policies = append(p.policies, newPolicyPricing(judge, of.Most))
	}
	roots, err := of.roots()
	if err != nil {
		return nil, err
	}
	reader := transcript.Reader{Client: of.Client, Since: of.Since, Visit: func(c *transcript.Call) error { return p.visit(ctx, c) }}
	if p.price.Transcripts, err = reader.Read(ctx, roots); err != nil {
		return nil, err
	}
	return p.finished(), nil
}

// roots are where the transcripts lie.
func (s *Sessions) roots() (roots []transcript.Root, err error) {
	if len(s.Paths) == 0 {
		home, err := os.UserHomeDir()
		return transcript.Roots(home, os.Getenv), err
	}
	for _, path := range s.Paths {
		roots = append(roots, transcript.Root{Path: path})
	}
	return roots, nil
}

// pricing counts while the transcripts are read. What it keeps does not grow with them.
type pricing struct {
	price     *Price
	of        Sessions
	sessions  map[[2]string]bool
	notJudged map[string]int
	policies  []*policyPricing
}

func (p *pricing) visit(ctx context.Context, c *transcript.Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.count(c)
	for i, one := range p.policies {
		judged, err := one.judge.call(ctx, c)
		if err != nil {
			if i == 0 {
				count(p.notJudged, err.Error())
			}
			continue
		}
		one.add(ctx, judged)
	}
	return nil
}

// count is about the call itself, whatever a policy says of it.
func (p *pricing) count(c *transcript.Call) {
	i := slices.IndexFunc(p.price.Clients, func(known *ClientPrice) bool { return known.Client == c.Client })
	if i < 0 {
		i = len(p.price.Clients)
		p.price.Clients = append(p.price.Clients, &ClientPrice{Client: c.Client, Title: p.policies[0].judge.past.Title(c.Client)})
	}
	p.price.Calls++
	p.price.Clients[i].Calls++
	if key := [2]string{c.Client, c.Session}; !p.sessions[key] {
		p.sessions[key] = true
		p.price.Sessions++
		p.price.Clients[i].Sessions++
	}
	if c.Project == "" && c.WorkDir == "" {
		p.price.Nowhere++
	}
	if p.price.From.IsZero() || c.Time.Before(p.price.From) {
		p.price.From = c.Time
	}
	if c.Time.After(p.price.To) {
		p.price.To = c.Time
	}
}

// finished puts what was counted in order.
func (p *pricing) finished() *Price {
	p.price.NotJudged = byCount(p.notJudged)
	for _, one := range p.policies {
		p.price.Policies = append(p.price.Policies, one.finished())
	}
	return p.price
}

// close ends what was opened to try settings.
func (p *pricing) close() (err error) {
	for _, one := range p.policies {
		err = errors.Join(err, one.remedies.close())
	}
	return err
}

const (
	maxTexts   = 1000 // different texts that are counted each by itself
	otherTexts = "others"
)

// count counts a text, and beyond a bound all others together.
func count(texts map[string]int, text string) {
	if _, known := texts[text]; !known && len(texts) >= maxTexts {
		text = otherTexts
	}
	texts[text]++
}

func byCount(texts map[string]int) (list []Counted) {
	for text, n := range texts {
		list = append(list, Counted{text, n})
	}
	slices.SortFunc(list, func(a, b Counted) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text)) })
	return list
}

// policyPricing counts what one policy says.
type policyPricing struct {
	judge    *judge
	price    *PolicyPrice
	reasons  map[string]*Reason
	remedies *remedies
	stopped  *stoppages
}

func newPolicyPricing(j *judge, most int) *policyPricing {
	return &policyPricing{
		judge: j, price: &PolicyPrice{Policy: j.Name()}, reasons: map[string]*Reason{},
		remedies: newRemedies(j), stopped: &stoppages{redact: redact.New(), most: most},
	}
}

// how a call that does harm is kept from doing it. One that runs without a question runs in a sandbox: on the host it would ask.
var how = map[toolward.Verdict]string{toolward.Deny: "refused", toolward.Ask: "asked", toolward.Allow: "confined"}

// add counts a judged call.
func (p *policyPricing) add(ctx context.Context, o *judged) {
	where, trace := o.where(o.sandboxed)
	if p.price.Sandboxing != "on" {
		p.price.Sandboxing = cmp.Or(o.sandboxing, p.price.Sandboxing)
	}
	switch {
	case trace.Verdict == toolward.Ask:
		p.price.Asked++
	case trace.Verdict != toolward.Allow:
		p.price.Refused++
	case where == Inside:
		p.price.Ran.Inside++
	default:
		p.price.Ran.OnHost++
	}
	if !o.known {
		p.price.Unknown++
	}
	_, confined := o.where(true)
	if o.command {
		p.price.Commands.Total++
		p.price.Commands.Inside.add(confined.Verdict)
		p.price.Commands.OnHost.add(o.host.Verdict)
	}
	if o.host.Verdict == toolward.Ask || confined.Verdict == toolward.Ask {
		p.reason(o, confined.Verdict == toolward.Ask)
	}
	switch harm := o.harm(); {
	case harm != "" && o.host.Verdict != toolward.Allow:
		p.stopped.add(o, harm, how[trace.Verdict])
	case harm == "" && trace.Verdict == toolward.Ask:
		p.remedies.add(ctx, o) // nobody is shown a line that would let harm be done unseen
	}
}

func (p *policyPricing) finished() *PolicyPrice {
	p.price.Reasons, p.price.Remedies = sortedReasons(p.reasons), p.remedies.best()
	p.price.Stopped, p.price.Left = p.stopped.sorted()
	return p.price
}
