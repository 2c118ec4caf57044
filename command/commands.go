package command

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/shell"
)

// Commands judges the commands of all agents, by the configuration in force and by exec-approvals.json as it is at that
// moment. Until it is configured, only the file lets commands run. It is safe for concurrent use.
type Commands struct {
	file     *allowlist.Store
	home     string
	foldCase bool
	resolver *Resolver

	mu       sync.RWMutex
	config   Configuration
	compiled map[string]*agentCommands // by agent id
}

// agentCommands is what commands of an agent are judged by, for one state of the file.
type agentCommands struct {
	file      *allowlist.Snapshot
	settings  modes.Settings // of the file
	host      Host           // configured
	evaluator *Evaluator
	err       error
}

// mostAgents bounds how many evaluators are kept. They are made again when they are needed.
const mostAgents = 1000

// NewCommands judges by a file. home is what "~/" means in its patterns; foldCase says that the file system takes names
// that differ in case for the same.
func NewCommands(file *allowlist.Store, home string, foldCase bool) *Commands {
	return &Commands{file: file, home: home, foldCase: foldCase, resolver: NewResolver(Disk{}), compiled: map[string]*agentCommands{}}
}

// Configure puts a configuration in force, or reports what is wrong with it and changes nothing.
func (c *Commands) Configure(config Configuration) (warnings []Warning, err error) {
	commit, warnings, err := c.Prepare(config)
	if err == nil {
		commit()
	}
	return warnings, err
}

// Prepare checks a configuration, and says what in it is ignored. Nothing changes before commit.
func (c *Commands) Prepare(config Configuration) (commit func(), warnings []Warning, err error) {
	if warnings, err = config.Check(); err != nil {
		return nil, nil, err
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.config = config
		clear(c.compiled)
	}, warnings, nil
}

// Ruling is an assessment together with what the host's file and the call say.
type Ruling struct {
	*Assessment
	Place    Place          // where the command would run
	Settings modes.Settings // of the file, tightened by the call
	Corrupt  error          // why the file cannot be used
}

// Judge says where a command runs, and judges it. The error is a *[HostError] if there is no such place.
func (c *Commands) Judge(caller toolward.Caller, params HostParams, r *Request) (*Ruling, error) {
	file := c.file.Current()
	own := c.of(cmp.Or(caller.Agent, allowlist.MainAgent), file)
	if own.err != nil {
		return nil, own.err
	}
	place, err := Choose(HostConfig{Host: own.host, FileModes: own.settings, SandboxAvailable: r.Sandboxed, Elevation: c.elevation(caller)}, params)
	if err != nil {
		return nil, err
	}
	settings, corrupt := own.settings, file.Corrupt
	if place.Host == HostSandbox {
		settings, corrupt = modes.Settings{}, nil // the file is about this machine
	}
	asked, err := params.read()
	if err != nil {
		return nil, err
	}
	assessment := own.evaluator.Evaluate(r)
	if own.settings.Security.Denies() {
		assessment.Always = nil // no entry lets a command run where the file denies all of them
	}
	return &Ruling{assessment, place, settings.Tightened(asked.security, asked.ask), corrupt}, nil
}

func (c *Commands) elevation(caller toolward.Caller) Elevation {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return Elevation{
		Level:       c.config.ElevatedDefault,
		FailedGates: ElevatedGates(c.config.Elevated, c.config.AgentElevated[agentKey(cmp.Or(caller.Agent, allowlist.MainAgent))], caller),
	}
}

// of is what an agent is judged by, made anew when the file has changed.
func (c *Commands) of(agent string, file *allowlist.Snapshot) *agentCommands {
	c.mu.RLock()
	have := c.compiled[agent]
	c.mu.RUnlock()
	if have != nil && have.file == file {
		return have
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	section := c.config.For(agent)
	made := &agentCommands{file: file, settings: file.Settings(agent), host: section.Host}
	policy := section.policy(file.Allowlist(agent), c.config.Writes, c.foldCase)
	made.evaluator, _, made.err = New(policy, c.home, c.resolver)
	if len(c.compiled) >= mostAgents {
		clear(c.compiled)
	}
	c.compiled[agent] = made
	return made
}

// Analysis is the ruling in the words of the gateway.
func (r *Ruling) Analysis() *toolward.CommandAnalysis {
	a := r.Assessment.Analysis()
	a.Security, a.Ask = string(r.Settings.Security), string(r.Settings.Ask)
	a.Unanswered = r.Settings.AskFallback == modes.FallbackAllowlist
	if r.Corrupt != nil && a.Forbidden == "" {
		a.Forbidden = "exec-approvals.json is corrupt: every command is refused until a person mends or replaces it"
	}
	return a
}

// Analysis is the assessment in the words of the gateway.
func (a *Assessment) Analysis() *toolward.CommandAnalysis {
	analysis := &toolward.CommandAnalysis{
		Understood: a.OK, Covered: a.Satisfied, Reads: a.readsOnly(), Findings: a.Findings, Forbidden: a.Forbidden, Enforced: a.Enforced,
	}
	for _, e := range a.Always {
		analysis.Always = append(analysis.Always, toolward.CommandEntry{Pattern: e.Pattern, Effects: e.Effects, Argv: e.Argv, Host: e.Host})
	}
	return analysis
}

// RecordUse notes the entries that let a command run.
func (c *Commands) RecordUse(a *Assessment) {
	now := time.Now()
	var uses []allowlist.Use
	eachSegment(a.Segments, func(s *Segment) {
		if s.Entry != nil {
			path := cmp.Or(s.loads, s.Program.Path)
			uses = append(uses, allowlist.Use{Agent: s.Entry.Agent, Pattern: s.Entry.Pattern, Argv: s.Entry.Argv, Command: a.Command, ResolvedPath: path, At: now})
		}
	})
	c.file.RecordUse(uses...)
}

// Allow adds entries to what an agent may run without a question, as an answer of "always" does.
func (c *Commands) Allow(ctx context.Context, agent string, entries []toolward.CommandEntry) error {
	now := time.Now().UnixMilli()
	_, err := c.file.Permit(ctx, func(f *allowlist.File) (changed bool) {
		for _, e := range entries {
			entry := allowlist.Entry{Pattern: e.Pattern, Effects: slices.Clone(e.Effects), Argv: slices.Clone(e.Argv), Host: string(e.Host), GivenBy: e.GivenBy}
			changed = f.Allow(cmp.Or(agent, allowlist.MainAgent), entry, now) || changed
		}
		return changed
	}, nil)
	return err
}

// CallFindings are what is wrong with the command whatever the settings, as findings of the call.
func (r *Ruling) CallFindings() (found []toolward.Finding) {
	if len(r.Critical) > 0 {
		found = append(found, toolward.Finding{Code: "command_dangerous", Effect: toolward.EffectAsk, Detail: strings.Join(r.Critical, "; ")})
	}
	if len(r.Hidden) > 0 {
		found = append(found, toolward.Finding{Code: "command_hidden", Effect: toolward.EffectAsk, Detail: strings.Join(r.Hidden, ", ")})
	}
	if r.explained() {
		if notes := r.notes(); len(notes) > 0 {
			found = append(found, toolward.Finding{Code: "command_caution", Effect: toolward.EffectNote, Detail: strings.Join(notes, "; ")})
		}
	}
	if slices.Contains(r.Findings, modes.FindingInlineEval) {
		// It forces a question by itself where an allowlist applies; in a sandbox the container is the guard.
		found = append(found, toolward.Finding{Code: "command_inline", Effect: toolward.EffectNote, Detail: "there is code in the arguments"})
	}
	return found
}

// explained reports whether people are asked. What runs without a question is not explained to anybody.
func (r *Ruling) explained() bool {
	return !r.Satisfied || len(r.Findings) > 0 || r.Settings.Ask == modes.AskAlways
}

// BoundFindings tell people what an approval of the command does not hold on to: left is what its binding says. Another program could
// exchange that while they read.
func (r *Ruling) BoundFindings(left []string) []toolward.Finding {
	if len(left) == 0 || !r.explained() {
		return nil
	}
	text := "it may have changed by the time it runs: " + strings.Join(left, "; ")
	return []toolward.Finding{{Code: "command_unbound", Effect: toolward.EffectNote, Detail: text}}
}

// External names the commands that read what strangers wrote, if there are any. What is not understood may.
func (r *Ruling) External() []string {
	if !r.OK {
		return []string{"command that is not understood"}
	}
	if !r.Network {
		return nil
	}
	var sources []string
	var walk func([]Segment)
	walk = func(segments []Segment) {
		for i := range segments {
			s := &segments[i]
			for j := range s.Effects {
				e := &s.Effects[j]
				if e.Kind == shell.Network {
					sources = append(sources, strings.TrimSpace("command "+s.Program.Word+" "+e.Host))
				}
				if e.Runs != nil {
					walk([]Segment{*e.Runs})
				}
			}
			walk(s.Inner)
		}
	}
	walk(r.Segments)
	slices.Sort(sources)
	return slices.Compact(sources)
}
