package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
)

type levelCommand struct {
	Get   levelGetCommand   `cmd:"" help:"Show the level of a session and its signals."`
	Set   levelSetCommand   `cmd:"" help:"Raise a session's level."`
	Clear levelClearCommand `cmd:"" help:"Clear what raised a session's level."`
}

type levelGetCommand struct {
	Session string `arg:"" help:"Session key."`
}

// Run shows a level.
func (c *levelGetCommand) Run(inv *invocation) error {
	level, err := inv.daemon().Level(inv, c.Session)
	if err != nil {
		return err
	}
	return inv.printLevel(level)
}

// earlierSources stands at the end of a list of sources that was cut.
const earlierSources = "(and from earlier sources, which are not kept: a new session is safer than to forget them)"

func (inv *invocation) printLevel(l local.Level) error {
	if inv.json {
		return inv.printJSON(l)
	}
	fmt.Fprintf(inv.stdout, "%s: %s\n", display.Line(string(l.Session)), l.Level)
	for _, reason := range l.Inputs.Reasons {
		fmt.Fprintf(inv.stdout, "because   %s\n", display.Line(reason))
	}
	fmt.Fprintf(inv.stdout, "context   %s\n", contextText(l.Inputs))
	if l.Inputs.Floor != toolward.Normal {
		fmt.Fprintf(inv.stdout, "floor     %s\n", display.Line(floorText(l)))
	}
	if l.Inputs.Suspicious {
		fmt.Fprintln(inv.stdout, "suspicion content from outside looked like instructions")
	}
	for _, source := range l.Sources {
		fmt.Fprintf(inv.stdout, "has seen  %s\n", display.Line(source))
	}
	if l.SourcesCut {
		fmt.Fprintln(inv.stdout, "has seen  "+earlierSources)
	}
	return nil
}

func contextText(in toolward.LevelInputs) string {
	text := "how full it is is not known"
	if in.ContextTokens >= 0 && in.ContextWindow > 0 {
		text = fmt.Sprintf("%d of %d tokens", in.ContextTokens, in.ContextWindow)
	}
	if in.Compacted {
		text += ", compacted"
	}
	return text
}

func floorText(l local.Level) string {
	text := "at least " + l.Inputs.Floor.String()
	if l.FloorUntil.IsZero() {
		text += " until somebody clears it"
	} else {
		text += " until " + l.FloorUntil.Local().Format(time.DateTime)
	}
	if l.FloorBy != "" {
		text += ", by " + l.FloorBy
	}
	return text
}

type levelSetCommand struct {
	Session string `arg:"" help:"Session key."`
	Level   string `arg:"" enum:"normal,elevated,lockdown" help:"The least tense level that it may have until somebody clears it."`
}

// Run raises a level.
func (c *levelSetCommand) Run(inv *invocation) error {
	level, err := inv.daemon().SetLevel(inv, c.Session, c.Level)
	if err != nil {
		return err
	}
	return inv.printLevel(level)
}

type levelClearCommand struct {
	Session  string `arg:"" help:"Session key."`
	External bool   `help:"Also forget that the session has seen content from outside, after showing where it came from and asking."`
	ReadThem bool   `name:"i-read-the-sources" help:"With --external: do not ask; the list is printed all the same."`
}

// Run clears a level.
func (c *levelClearCommand) Run(inv *invocation) error {
	read := ""
	if c.External {
		var err error
		if read, err = c.readSources(inv); err != nil {
			return err
		}
	}
	level, err := inv.daemon().ClearLevel(inv, c.Session, read)
	if err != nil {
		return err
	}
	return inv.printLevel(level)
}

// readSources shows where a session's content from outside came from, and has a person say that they have read it.
// The stamp says to which list: what comes in meanwhile is not cleared.
func (c *levelClearCommand) readSources(inv *invocation) (stamp string, err error) {
	level, err := inv.daemon().Level(inv, c.Session)
	if err != nil {
		return "", err
	}
	shown := "(no source is known)"
	if len(level.Sources) > 0 {
		lines := make([]string, len(level.Sources))
		for i, source := range level.Sources {
			lines[i] = display.Line(source)
		}
		shown = strings.Join(lines, "\n")
	}
	if level.SourcesCut {
		shown += "\n" + earlierSources
	}
	fmt.Fprintf(inv.stderr, "The session has seen content from:\n%s\n", shown)
	if !c.ReadThem && !confirm(inv.stdin, inv.stderr, "Have you read this list, and may all of it be forgotten?") {
		return "", &exitErr{
			exitUsage, errors.New("clearing what the session has seen needs a person who has read the list of sources"),
			"answer y, or add --i-read-the-sources",
		}
	}
	return level.Stamp, nil
}
