package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit/anomaly"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/session"
	"github.com/toolward/toolward/store"
)

const levelsPage = "../../docs/levels.md"

var updateLevels = flag.Bool("update-levels", false, "write the table of detectors into docs/levels.md")

// detectorRows is the table of detectors as the program has it.
func detectorRows() string {
	var b strings.Builder
	for _, d := range anomaly.Defaults() {
		window := "–"
		if d.Window > 0 {
			window = strings.TrimSuffix(strings.TrimSuffix(d.Window.String(), "0s"), "m") + " min"
		}
		var steps []string
		for _, s := range d.Steps {
			steps = append(steps, fmt.Sprintf("%d: `%s`", s.Threshold, s.Action))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Detector, d.Counts, window, strings.Join(steps, ", "))
	}
	return b.String()
}

// The table of detectors is the program's.
func TestTheTableOfDetectorsIsTrue(t *testing.T) {
	page := readPage(t)
	const head = "| detector | counts | window | what follows |\n|---|---|---|---|\n"
	before, rest, found := strings.Cut(page, head)
	table, after, ended := strings.Cut(rest, "\nWhat follows can be")
	if !found || !ended {
		t.Fatal("the page has no table of detectors")
	}
	if *updateLevels {
		if err := os.WriteFile(levelsPage, []byte(before+head+detectorRows()+"\nWhat follows can be"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != detectorRows() {
		t.Errorf("the table of detectors is\n%swant (go test ./cmd/toolward -run Detectors -update-levels)\n%s", table, detectorRows())
	}
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(levelsPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The example of the page does what the page says, and the defaults, too.
func TestTheExampleOfLevelsIsTrue(t *testing.T) {
	page := readPage(t)
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("%d examples", len(blocks))
	}
	check := config.CheckPolicy(nil, policy.Surroundings{})
	plain, err := config.Parse("no file", nil, check)
	if err != nil {
		t.Fatal(err)
	}
	example, err := config.Parse("docs/levels.md", []byte(blocks[0][1]), check)
	if err != nil {
		t.Fatal(err)
	}
	plays := map[string]func(*played){
		"9 different changes": func(p *played) {
			p.facts.Mutates = true
			for n := range 9 {
				p.call(n)
			}
		},
		"7 calls that are refused": func(p *played) {
			p.policy.Verdict = toolward.Deny
			for n := range 7 {
				p.call(n)
			}
		},
		"the same call 6 times, with the same outcome": func(p *played) {
			for range 6 {
				p.call(0)
			}
		},
	}
	_, rows, _ := strings.Cut(page, "| an agent makes, within a minute |")
	seen := 0
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		play := plays[strings.TrimSpace(cells[0])]
		if play == nil || len(cells) != 3 {
			continue
		}
		seen++
		for i, file := range []*config.Loaded{plain, example} {
			p := newPlayed(t, file)
			play(p)
			if got, want := p.story(), strings.TrimSpace(cells[i+1]); got != want {
				t.Errorf("%s, %s: %q, the page says %q", cells[0], file.Name, got, want)
			}
		}
	}
	if seen != len(plays) {
		t.Errorf("%d of %d rows are on the page", seen, len(plays))
	}
}

// played is a gateway with detectors and levels, to which calls are played.
type played struct {
	t       *testing.T
	policy  *gatetest.Policy
	facts   toolward.Facts
	tracker *session.Tracker
	gateway *toolward.Gateway
	calls   int
	events  []string
}

const playedSession = toolward.SessionKey("agent:coder:page")

func newPlayed(t *testing.T, file *config.Loaded) *played {
	t.Helper()
	p := &played{t: t}
	tool := &toolward.Tool{
		Name:  "tool",
		Facts: func(context.Context, *toolward.Request) (toolward.Facts, error) { return p.facts, nil },
		Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
			return toolward.TextResult("same"), nil
		},
	}
	p.policy = &gatetest.Policy{Rev: "1", All: []*toolward.Tool{tool}, Verdict: toolward.Allow}
	db, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	p.tracker, err = session.New(session.Options{
		Store: store.NewSessions(db), Settings: session.Settings{DefaultLevel: toolward.Normal},
		OnChange: func(c session.Change) { p.events = append(p.events, fmt.Sprintf("%s after %d", c.To, p.calls)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	monitor, err := anomaly.New(file.File.Watching())
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := anomaly.NewWatcher(monitor, p.tracker, func(n anomaly.Notice) {
		if n.Notify && n.Action == anomaly.Alert {
			p.events = append(p.events, fmt.Sprintf("alert at %d", p.calls))
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.gateway, err = toolward.New(toolward.Config{
		Policy: p.policy, Approver: &gatetest.Approver{}, Auditor: &gatetest.Auditor{}, Sessions: p.tracker, Watcher: watcher,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *played) call(n int) {
	p.calls++
	_, err := p.gateway.Call(p.t.Context(), toolward.Call{
		ID: fmt.Sprint(p.calls), Run: "r", Tool: "tool", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Session: playedSession,
		Caller: toolward.Caller{Agent: "coder"},
	})
	if refusal, ok := errors.AsType[*toolward.Refusal](err); ok && p.policy.Verdict == toolward.Allow {
		p.events = append(p.events, fmt.Sprintf("refused as %s at %d", refusal.Code, p.calls))
	}
}

func (p *played) story() string {
	if len(p.events) == 0 {
		return "nothing"
	}
	return strings.Join(p.events, ", ")
}

// Every command on the page is one that the program takes.
func TestTheCommandsOfLevelsAreTaken(t *testing.T) {
	parser, err := newParser(&commandLine{})
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("`toolward ([^`]+)`").FindAllStringSubmatch(readPage(t), -1)
	for _, command := range commands {
		if _, err := parser.Parse(strings.Fields(command[1])); err != nil {
			t.Errorf("toolward %s: %v", command[1], err)
		}
	}
	if len(commands) < 5 {
		t.Errorf("only %d commands", len(commands))
	}
}
