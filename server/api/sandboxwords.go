package api

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward/sandbox/fleet"

	"github.com/toolward/toolward/sandbox"
)

// figures are what changes while somebody looks. The script puts them in place without touching anything else.
type Figures struct {
	Age    string `json:"age"`
	Idle   string `json:"idle"`
	CPU    figure `json:"cpu"`
	Memory figure `json:"memory"`
	Pids   figure `json:"pids"`
	Note   string `json:"note"` // what more is to be said, or why there is no figure
}

// figure is a number in words, and as part of a whole where there is one.
type figure struct {
	Text  string `json:"text"`
	Value string `json:"value"`
	Max   string `json:"max"` // "" without a whole
}

func StateWords(i *fleet.Info) (words, kind string) {
	switch {
	case i.Silent:
		return "no answer", "gone"
	case i.Missing:
		return "gone", "gone"
	case i.Running && i.Users > 0:
		return "in use", "running"
	case i.Running:
		return "running, idle", "running"
	}
	return "stopped", "stopped"
}

func ShareWords(i *fleet.Info) string {
	switch i.Scope {
	case settings.ScopeSession:
		return "one session of its own"
	case settings.ScopeShared:
		return "all agents share it"
	}
	return "all sessions of the agent share it"
}

func ImageText(i *fleet.Info) (image, note string) {
	switch {
	case i.Engine != sandbox.EngineDocker:
		return "this machine's programs", ""
	case i.ImageMatch:
		return i.Image, "the configured one"
	}
	return cmp.Or(i.Image, "not known"), "not the configured one: recreate it to use that"
}

func NetworkWords(mode sandbox.NetworkMode) string {
	switch mode {
	case "":
		return "not known"
	case sandbox.NetworkNone:
		return "none"
	case sandbox.NetworkEgress:
		return "egress: only hosts that are allowed, through the gateway's proxy"
	case sandbox.NetworkBridge:
		return "bridge: every address, also of your own network"
	}
	return string(mode) + ": a network of the container engine, and whatever that reaches"
}

func WorkspaceWords(i *fleet.Info) string {
	switch i.Access {
	case settings.AccessReadWrite:
		return "the workspace itself, which it can change"
	case settings.AccessReadOnly:
		return "the workspace read-only, and a private directory that it cannot change"
	}
	return "a private directory; the workspace is not inside"
}

// limit is one limit in words of our own.
type Limit struct{ Name, Text string }

func LimitsOf(l *fleet.ShownLimits) (list []Limit) {
	add := func(name string, set bool, text string) {
		if !set {
			text = "no limit"
		}
		list = append(list, Limit{name, text})
	}
	add("Memory", l.Memory > 0, sizeWords(l.Memory))
	list = append(list, Limit{"Swap", sizeWords(l.Swap)})
	add("Processes", l.Pids > 0, strconv.FormatInt(l.Pids, 10))
	add("Processors", l.CPUs > 0, number(l.CPUs))
	add("Disk", l.Disk > 0, sizeWords(l.Disk))
	add("Open files", l.OpenFiles > 0, strconv.FormatInt(l.OpenFiles, 10)+" each process")
	add("One file", l.FileSize > 0, sizeWords(l.FileSize))
	return list
}

// figuresOf is what a sandbox uses, in words.
func FiguresOf(one *Sandbox, now time.Time) Figures {
	f := Figures{Age: AgoWords(now.Sub(one.Created)), Idle: AgoWords(now.Sub(one.Used)) + " ago", CPU: figure{Text: "–"}, Memory: figure{Text: "–"}, Pids: figure{Text: "–"}}
	if one.Users > 0 {
		f.Idle = "now"
	}
	u := one.Usage
	switch {
	case u == nil && one.Running:
		f.Note = "no answer"
		return f
	case u == nil:
		return f
	case u.At.IsZero():
		f.Note = cmp.Or(u.Problem, "no answer")
		return f
	}
	f.Note = u.Problem
	f.CPU = busyFigure(u)
	f.Memory = figure{Text: sizeWords(u.Memory)}
	if one.Limits.Memory > 0 {
		f.Memory = figure{
			sizeWords(u.Memory) + " of " + sizeWords(one.Limits.Memory), strconv.FormatInt(min(u.Memory, one.Limits.Memory), 10), strconv.FormatInt(one.Limits.Memory, 10),
		}
	}
	if one.Limits.Pids > 0 {
		f.Pids = figure{fmt.Sprintf("%d of %d", u.Pids, one.Limits.Pids), strconv.FormatInt(min(u.Pids, one.Limits.Pids), 10), strconv.FormatInt(one.Limits.Pids, 10)}
	} else {
		f.Pids = figure{Text: strconv.FormatInt(u.Pids, 10)}
	}
	var more []string
	if u.Cache >= 1<<20 {
		more = append(more, "page cache "+sizeWords(u.Cache)+" besides")
	}
	if u.OOMKills > 0 {
		more = append(more, fmt.Sprintf("memory ran out %d ×", u.OOMKills))
	}
	if f.Note == "" {
		f.Note = strings.Join(more, "; ")
	}
	return f
}

// SandboxWords is a sandbox in words, for people in a terminal. They are not made safe for showing.
type SandboxWords struct {
	State, Age, Idle        string
	CPU, Memory, Pids, Note string // "–" is not known
	Image, Network          string
	Workspace, Limits       string
}

// Words say what a sandbox is, and what it uses now.
func (s *Sandbox) Words() SandboxWords {
	f := FiguresOf(s, time.Now())
	w := SandboxWords{
		Age: f.Age, Idle: f.Idle, CPU: f.CPU.Text, Memory: f.Memory.Text, Pids: f.Pids.Text, Note: f.Note,
		Network: NetworkWords(s.Network), Workspace: strings.TrimSpace(WorkspaceWords(&s.Info) + " " + s.WorkspaceDir),
	}
	w.State, _ = StateWords(&s.Info)
	image, note := ImageText(&s.Info)
	w.Image = image
	if note != "" {
		w.Image += ", " + note
	}
	var limits []string
	for _, limit := range LimitsOf(&s.Limits) {
		limits = append(limits, strings.ToLower(limit.Name)+" "+limit.Text)
	}
	w.Limits = strings.Join(limits, ", ")
	return w
}

func busyFigure(u *fleet.Usage) figure {
	switch {
	case u.Busy == nil:
		return figure{Text: "–"}
	case u.Processors <= 0:
		return figure{Text: fmt.Sprintf("%.0f %% of one processor", 100**u.Busy)}
	}
	part := min(1, *u.Busy/u.Processors)
	of := "processors"
	if u.Processors == 1 {
		of = "processor"
	}
	return figure{fmt.Sprintf("%.0f %% of %s %s", 100*part, number(u.Processors), of), strconv.FormatFloat(part, 'f', 3, 64), "1"}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// sizeWords is a number of bytes for people, in powers of 1024.
func sizeWords(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	digits := 0
	if value < 9.95 && value != float64(int64(value)) {
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + units[unit:unit+1] + "iB"
}

// agoWords is how long something was, in two units at most.
func AgoWords(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		if minutes := int(d.Minutes()) % 60; minutes > 0 {
			return fmt.Sprintf("%d h %d min", int(d.Hours()), minutes)
		}
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// inOrder puts sandboxes in an order that does not change while they work: those that run first, then by name.
func SortSandboxes(list []Sandbox) {
	slices.SortStableFunc(list, func(a, b Sandbox) int {
		if a.Running != b.Running {
			if a.Running {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.ScopeKey, b.ScopeKey), cmp.Compare(a.Name, b.Name))
	})
}
