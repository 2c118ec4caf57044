package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/settings"
)

// Lengths of what is told of one sandbox.
const (
	sandboxCommands = 20
	callsAtOnce     = 200 // decisions that are read at once to find them
	callsPages      = 5
	sandboxEvents   = 15
	// beforeMade is how long before a sandbox was made the call may have been decided that it was made for.
	beforeMade = time.Minute
)

// SandboxCommand is a call that was decided for a sandbox. Its texts are as the record keeps them: without secrets, cut,
// and not made safe for showing.
type SandboxCommand struct {
	Seq        int64     `json:"seq"` // of its decision in the record
	At         time.Time `json:"at"`
	Session    string    `json:"session"`
	Tool       string    `json:"tool"`
	About      string    `json:"about"` // the command, the path or what else it was aimed at, in one line
	Verdict    string    `json:"verdict"`
	How        string    `json:"how"`              // who or what decided
	Status     string    `json:"status,omitempty"` // "" while it runs
	DurationMs int64     `json:"durationMs,omitempty"`
	ExitCode   *int      `json:"exitCode,omitempty"`
	Error      string    `json:"error,omitempty"`
}

// SandboxEvent is something that happened to a sandbox.
type SandboxEvent struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Event   fleet.EventKind `json:"event"`
	Session string          `json:"session,omitempty"` // whose call it was, if it was a call
	Why     string          `json:"why,omitempty"`
	Paths   []string        `json:"paths,omitempty"` // inside, that commands made where nothing may be
	// Of a port on which a program listens, or that is forwarded.
	Port      uint16 `json:"port,omitempty"`
	Program   string `json:"program,omitempty"`
	LocalPort uint16 `json:"localPort,omitempty"`
	By        string `json:"by,omitempty"`
}

// SandboxHistory is what the record has of a sandbox, newest first, for as long as a search may take. warning says that there may be
// more.
func (d *Desk) SandboxHistory(ctx context.Context, v Visitor, i *fleet.Info) (commands []SandboxCommand, events []SandboxEvent, warning string, err error) {
	if err := d.may(v, SeeSandboxes, d.records != nil); err != nil {
		return nil, nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, SearchPatience)
	defer cancel()
	commands, err = d.sandboxCalls(ctx, i)
	events, err2 := d.sandboxLife(ctx, i.Name)
	if err = errors.Join(err, err2); err == nil {
		return commands, events, "", nil
	}
	d.log.Debug("the record of a sandbox was not read whole", "sandbox", i.Name, "err", err)
	return commands, events, "The record could not be searched in time: there may be more.", nil
}

// sandboxCalls are the latest calls that were decided for a sandbox.
func (d *Desk) sandboxCalls(ctx context.Context, i *fleet.Info) ([]SandboxCommand, error) {
	commands := []SandboxCommand{}
	filter := audit.Filter{Type: audit.TypeDecision, Text: i.Name, Since: i.Created.Add(-beforeMade), Limit: callsAtOnce}
	switch i.Scope {
	case settings.ScopeSession:
		filter.Session = i.ScopeKey
	case settings.ScopeAgent:
		filter.Agent = i.Agent
	}
	for range callsPages {
		records, err := d.records.Query(ctx, filter)
		if err != nil {
			return commands, err
		}
		for at := range records {
			c, ok := newSandboxCommand(&records[at], i)
			if !ok {
				continue
			}
			if err := d.addOutcome(ctx, &c); err != nil {
				return commands, err
			}
			if commands = append(commands, c); len(commands) == sandboxCommands {
				return commands, nil
			}
		}
		if len(records) < callsAtOnce {
			break
		}
		filter.Below = records[len(records)-1].Seq
	}
	return commands, nil
}

// newSandboxCommand reads a decision; false if it was not for this sandbox. The search may have found the words anywhere.
func newSandboxCommand(r *audit.Record, i *fleet.Info) (SandboxCommand, bool) {
	var d DecisionRecord
	if json.Unmarshal([]byte(r.JSON), &d) != nil || d.Facts.Sandbox != i.Name {
		return SandboxCommand{}, false
	}
	about := AboutOf(&d)
	if !json.Valid([]byte(d.Preview)) && d.Preview != "" { // arguments that are too long to be kept whole
		about = Shortened(d.Preview)
	}
	return SandboxCommand{
		Seq: r.Seq, At: r.Time, Session: r.Session, Tool: r.Tool, About: about, Verdict: r.Verdict, How: HowOf(&d),
	}, true
}

// addOutcome adds what became of a call.
func (d *Desk) addOutcome(ctx context.Context, c *SandboxCommand) error {
	list, err := d.records.Query(ctx, audit.Filter{Type: audit.TypeOutcome, Ref: c.Seq, Since: c.At, Limit: 1})
	if err != nil || len(list) == 0 {
		return err
	}
	var o struct {
		DurationMs int64  `json:"durationMs"`
		Error      string `json:"error"`
		ExitCode   *int   `json:"exitCode"`
	}
	if err := json.Unmarshal([]byte(list[0].JSON), &o); err != nil {
		return err
	}
	c.Status, c.DurationMs, c.ExitCode, c.Error = cmp.Or(list[0].Status, "ended"), o.DurationMs, o.ExitCode, Shortened(o.Error)
	return nil
}

// sandboxLife is what happened to a sandbox, newest first.
func (d *Desk) sandboxLife(ctx context.Context, name string) ([]SandboxEvent, error) {
	events := []SandboxEvent{}
	records, err := d.records.Query(ctx, audit.Filter{Type: audit.TypeSandbox, Text: name, Limit: sandboxEvents})
	if err != nil {
		return events, err
	}
	for _, r := range records {
		var e struct {
			Data struct {
				SandboxEvent
				Sandbox string `json:"sandbox"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(r.JSON), &e) != nil || e.Data.Sandbox != name {
			continue
		}
		event := e.Data.SandboxEvent
		event.Seq, event.At, event.Session = r.Seq, r.Time, r.Session
		events = append(events, event)
	}
	return events, nil
}

// EndedWords say how a call in a sandbox has ended.
func (c *SandboxCommand) EndedWords() string {
	var words []string
	switch {
	case c.Verdict != toolward.Allow.String():
		return ""
	case c.Status == "":
		return "not ended yet"
	case c.ExitCode != nil:
		words = append(words, "exit "+strconv.Itoa(*c.ExitCode))
	case c.Status != string(toolward.StatusOK):
		words = append(words, c.Status)
	}
	words = append(words, durationWords(time.Duration(c.DurationMs)*time.Millisecond))
	if c.Error != "" && c.ExitCode == nil {
		words = append(words, c.Error)
	}
	return strings.Join(words, ", ")
}

// durationWords is how long a call took.
func durationWords(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return d.Round(time.Second).String()
}

// SearchPatience is how long one page of a search may take. A text that nowhere occurs makes the search read the whole
// record, which belongs to the calls that wait for it.
const SearchPatience = 3 * time.Second
