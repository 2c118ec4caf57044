package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway/trial"
)

type explainCommand struct {
	Tool      string `arg:"" optional:"" help:"Tool name; without it all tools are listed."`
	Args      string `help:"Arguments as JSON; @file or @- reads them." default:"{}"`
	Agent     string `help:"Agent that calls." default:"main"`
	Session   string `help:"Session key; default a fresh session."`
	Workspace string `help:"Workspace of the agent; default this directory." type:"path"`
	Owner     bool   `help:"The call is proven to be the owner's."`
	Depth     int    `help:"Level of sub-agent."`
	Sandboxed bool   `help:"The session runs in a sandbox."`
	Provider  string `help:"Provider of the model that calls."`
	Model     string `help:"Model that calls."`
	Surface   string `help:"Where the call comes in: mcp, http, agent, hook-adapter, node or cron." default:"mcp"`
	Hooks     bool   `help:"Also ask the plug-ins; they take it for a call."`
}

// Run explains one call, or lists all tools with the layer that removed each.
func (c *explainCommand) Run(inv *invocation) error {
	if c.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return err
		}
		c.Workspace = dir
	}
	args, err := readArgument(c.Args, inv.stdin)
	if err != nil {
		return err
	}
	request := local.ExplainRequest{
		Tool: c.Tool, Arguments: json.RawMessage(args), Agent: c.Agent, Session: c.Session,
		Workspace: c.Workspace, Owner: c.Owner, Depth: c.Depth, Hooks: c.Hooks,
		Sandboxed: c.Sandboxed, Provider: c.Provider, Model: c.Model, Surface: toolward.Surface(c.Surface),
	}
	if !json.Valid(request.Arguments) {
		return &exitErr{exitUsage, errors.New("--args is not valid JSON"), `for instance --args '{"path":"README.md"}'`}
	}
	if c.Tool == "" {
		return c.listTools(inv, request)
	}
	trace, err := inv.daemon().Explain(inv, request)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(trace)
	}
	inv.printTrace(trace)
	return nil
}

func (inv *invocation) printTrace(t toolward.Trace) {
	verdict := t.Verdict.String()
	switch {
	case t.Code != "":
		verdict += " (" + string(t.Code) + ")"
	case t.Via != "":
		verdict += " (" + t.Via + ")"
	}
	fmt.Fprintf(inv.stdout, "%s: %s at level %s\n", display.Line(t.Tool), verdict, t.Level)
	if t.Row != "" {
		fmt.Fprintf(inv.stdout, "class     %s, severity %s, row %s\n", t.Class, t.Severity, display.Line(t.Row))
	}
	if t.Host != "" {
		fmt.Fprintf(inv.stdout, "runs on   %s", display.Line(string(t.Host)))
		if t.HostWhy != "" {
			fmt.Fprintf(inv.stdout, ": %s", display.Line(t.HostWhy))
		}
		fmt.Fprintln(inv.stdout)
	}
	for _, f := range t.Findings {
		fmt.Fprintf(inv.stdout, "finding   %s (%s) %s\n", f.Code, f.Effect, display.Line(f.Detail))
	}
	for _, r := range t.Reasons {
		fmt.Fprintf(inv.stdout, "because   %s: %s", display.Line(r.Layer), display.Line(r.Text))
		if r.Rule != "" {
			fmt.Fprintf(inv.stdout, " [%s]", display.Line(r.Rule))
		}
		fmt.Fprintln(inv.stdout)
	}
	for _, run := range t.Hooks {
		fmt.Fprintf(inv.stdout, "plug-in   %s: %s in %d ms", run.Plugin, run.Effect, run.Ms)
		if run.Detail != "" {
			fmt.Fprintf(inv.stdout, ": %s", display.Line(run.Detail))
		}
		fmt.Fprintln(inv.stdout)
	}
	for _, s := range t.Steps {
		fmt.Fprintf(inv.stdout, "step      %-9s %s\n", s.Name, display.Line(s.Result))
	}
}

func (c *explainCommand) listTools(inv *invocation, request local.ExplainRequest) error {
	list, err := inv.daemon().ExplainTools(inv, request)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	err = inv.table("TOOL\tVISIBLE\tREMOVED BY\tKEY", func(row func(...any)) {
		for _, t := range list.Tools {
			if t.Removed == nil {
				row(t.Tool, "yes", "", "")
				continue
			}
			row(t.Tool, "no", t.Removed.Layer, t.Removed.Rule)
		}
		for _, name := range list.Unavailable {
			row(name, "no", "not available here", "")
		}
	})
	if err != nil {
		return err
	}
	return inv.printLayers(list)
}

// printLayers prints the layers that decided the list of tools, what is odd about them, and the lists of the agent's
// sandboxed sessions.
func (inv *invocation) printLayers(list local.ToolViews) error {
	fmt.Fprintln(inv.stdout)
	err := inv.table("LAYER\tREMOVES\tALLOW\tDENY", func(row func(...any)) {
		for _, l := range list.Layers {
			if l.Absent == "" {
				allow := ""
				if l.AllowKey != "" {
					allow = listOrEverything(l.Allow)
				}
				row(l.Label, len(l.Removed), allow, strings.Join(l.Deny, " "))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, w := range list.Warnings {
		fmt.Fprintf(inv.stdout, "warning   %s\n", display.Line(w.String()))
	}
	fmt.Fprintln(inv.stdout)
	s := list.Sandbox
	return inv.table("SANDBOXED\tSOURCE\tKEY\tLIST", func(row func(...any)) {
		row("allow", s.AllowSource.Source, s.AllowSource.Key, listOrEverything(s.Allow))
		row("deny", s.DenySource.Source, s.DenySource.Key, strings.Join(s.Deny, " "))
	})
}

// listOrEverything shows an allow list; an empty one allows everything.
func listOrEverything(list []string) string {
	if len(list) == 0 {
		return "*"
	}
	return strings.Join(list, " ")
}

type auditCommand struct {
	Tail   auditTailCommand   `cmd:"" help:"Follow the record."`
	Query  auditQueryCommand  `cmd:"" help:"Search the record."`
	Verify auditVerifyCommand `cmd:"" help:"Check the chain of hashes; finds the first break."`
	Key    auditKeyCommand    `cmd:"" help:"Print the public key that verifies the record and its exports."`
	Export auditExportCommand `cmd:"" help:"Print the record, one JSON object a line, or as a table."`
}

type auditTailCommand struct{}

// Run follows the record.
func (auditTailCommand) Run(inv *invocation) error {
	return inv.daemon().FollowRecords(inv, inv.printRecord)
}

type auditQueryCommand struct {
	Agent, Session, Tool string
	Verdict              string        `help:"allow or deny."`
	Status               string        `help:"Outcome, such as ok, error or lost."`
	Type                 string        `help:"decision, outcome, approval, grant, level, config or anomaly."`
	Text                 string        `help:"Part of the record."`
	Since                time.Duration `help:"Not older than, such as 24h."`
	Limit                int           `help:"At most so many." default:"100"`
}

// Run searches the record.
func (c *auditQueryCommand) Run(inv *invocation) error {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{
		"agent": c.Agent, "session": c.Session, "tool": c.Tool, "verdict": c.Verdict,
		"status": c.Status, "type": c.Type, "text": c.Text,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if c.Since > 0 {
		query.Set("since", time.Now().Add(-c.Since).UTC().Format(time.RFC3339Nano))
	}
	records, err := inv.daemon().Records(inv, query)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := inv.printRecord(record); err != nil {
			return err
		}
	}
	return nil
}

// printRecord prints a record as JSON, or in one line for people.
func (inv *invocation) printRecord(raw []byte) error {
	if inv.json {
		_, err := fmt.Fprintf(inv.stdout, "%s\n", raw)
		return err
	}
	var r struct {
		Seq                                                    int64
		TS                                                     json.RawMessage
		Type, AgentID, Tool, Verdict, Via, Code, Status, Error string
		Preview, Level, SessionKey                             string
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("a record of the log: %w", err)
	}
	parts := []string{strconv.FormatInt(r.Seq, 10), strings.Trim(string(r.TS), `"`), r.Type, r.AgentID, r.Tool}
	for _, p := range []string{r.Verdict, r.Status, r.Code, r.Via, r.Preview, r.Error} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	_, err := fmt.Fprintln(inv.stdout, display.Show(strings.Join(parts, "  "), display.Options{Limit: 300}))
	return err
}

type auditVerifyCommand struct {
	Export  string `help:"Check an exported file instead of the log." type:"existingfile"`
	Key     string `help:"Public key of the record, as \"audit key\" prints it; default the home's."`
	Against string `help:"Compare with the checkpoints in this file, which were kept elsewhere." type:"existingfile"`
}

// Run checks the chain. It reads the state itself, so it also works when no gateway runs.
func (c *auditVerifyCommand) Run(inv *invocation) error {
	report, err := trial.Verify(inv, trial.Verification{Home: inv.home, Export: c.Export, Key: c.Key, Against: c.Against})
	if broken, ok := errors.AsType[trial.Broken](err); ok {
		return &exitErr{exitUnsound, broken, "the record was changed after it was written; keep a copy and find out who could"}
	}
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(report)
	}
	fmt.Fprintf(inv.stdout, "%d records, %d to %d: the chain holds; signed up to %d.\n", report.Records, report.First, report.Last, report.Sealed)
	if c.Against != "" {
		fmt.Fprintf(inv.stdout, "%d checkpoints that were kept elsewhere agree with it.\n", report.Compared)
	}
	return nil
}

type auditKeyCommand struct{}

// Run prints the public key of the record. It reads the state itself.
func (auditKeyCommand) Run(inv *invocation) error {
	key, err := trial.RecordKey(inv.home)
	if err == nil {
		fmt.Fprintln(inv.stdout, key)
	}
	return err
}

type auditExportCommand struct {
	Format string `help:"json or csv. CSV is for spreadsheets: what they would take for a formula is escaped, and it cannot be verified." enum:"json,csv" default:"json"`
}

// Run prints the record.
func (c *auditExportCommand) Run(inv *invocation) error {
	return inv.daemon().ExportRecords(inv, c.Format, inv.stdout)
}
