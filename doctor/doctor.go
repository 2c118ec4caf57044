// Package doctor looks for what makes an installation less safe than it claims to be: modes of files, settings that
// expose the gateway or loosen it, a broken record.
//
// [Catalog] lists every check by its id, also those whose subject does not exist yet, so that nothing is silently
// missing. [Examine] makes the checks, and mends the few things that are safe to mend.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/sandbox/light"
)

// Severity says how grave a finding is.
type Severity string

// The severities, gravest first.
const (
	Critical Severity = "critical"
	Warn     Severity = "warn"
	Info     Severity = "info"
)

var order = []Severity{Critical, Warn, Info}

// Finding is something that is less safe than it should be.
type Finding struct {
	CheckID     string   `json:"checkId"`
	Severity    Severity `json:"severity"`
	Title       string   `json:"title"`
	Detail      string   `json:"detail"`
	Remediation string   `json:"remediation,omitempty"`
}

// Summary counts findings.
type Summary struct {
	Critical int `json:"critical"`
	Warn     int `json:"warn"`
	Info     int `json:"info"`
}

// Report is the outcome of an examination.
type Report struct {
	Findings []Finding `json:"findings"`
	Summary  Summary   `json:"summary"`
	Fixed    []string  `json:"fixed"`   // what --fix has changed, in words
	Checked  []string  `json:"checked"` // ids of the checks that were made
	// NotApplicable are the checks that were not made, by what they wait for.
	NotApplicable []Absent `json:"notApplicable"`
}

// Absent is why some checks were not made.
type Absent struct {
	Why      string   `json:"why"`
	CheckIDs []string `json:"checkIds"`
}

// Options say what to examine.
type Options struct {
	Home   string         // state directory
	Config *config.Loaded // as it would be in force; required
	// Tools and Around are what the gateway compiles the policy with.
	Tools  []*toolward.Tool
	Around policy.Surroundings
	// Status asks a running gateway how it is. Nil, or an error, means that none answers.
	Status func(context.Context) (Status, error)
	// Light tries what confines commands of this machine. Nil: this system has nothing of the kind.
	Light func() light.Check
	Deep  bool // verify the record, look at remembered answers, and expect a gateway to answer
	Fix   bool // tighten modes of files
	Now   time.Time
}

// Status is what a running gateway says of itself.
type Status struct {
	Setup   bool     // no passphrase has been set yet
	Shadow  bool     // it observes only
	Notices []string // what is wrong with it, in words
}

// Examine makes every check that has a subject.
func Examine(ctx context.Context, o Options) (*Report, error) {
	if o.Config == nil {
		return nil, fmt.Errorf("examine %s: no configuration", o.Home)
	}
	e := &examination{Options: o, ctx: ctx, file: o.Config.File, findings: []Finding{}, fixed: []string{}}
	if o.Status != nil {
		e.status, e.statusErr = o.Status(ctx)
		e.answers = e.statusErr == nil
	}
	for _, step := range []func() error{e.files, e.exposure, e.policies, e.gateway, e.commands, e.sandboxes, e.programs, e.record, e.surface} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return e.report(), nil
}

type examination struct {
	Options
	ctx       context.Context
	file      config.File
	answers   bool
	status    Status
	statusErr error
	findings  []Finding
	fixed     []string
}

// find adds a finding of the severity that the catalog gives it.
func (e *examination) find(id, remediation, format string, args ...any) {
	c, _ := checkOf(id)
	e.findAs(c.Severity, id, remediation, format, args...)
}

func (e *examination) findAs(severity Severity, id, remediation, format string, args ...any) {
	c, known := checkOf(id)
	title := c.Title
	if !known {
		title = strings.ReplaceAll(id[strings.LastIndexByte(id, '.')+1:], "_", " ")
	}
	e.findings = append(e.findings, Finding{id, severity, title, fmt.Sprintf(format, args...), remediation})
}

// report sorts and counts.
func (e *examination) report() *Report {
	slices.SortStableFunc(e.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)), cmp.Compare(a.CheckID, b.CheckID))
	})
	r := &Report{Findings: e.findings, Fixed: e.fixed, Checked: []string{}, NotApplicable: []Absent{}}
	for _, f := range e.findings {
		switch f.Severity {
		case Critical:
			r.Summary.Critical++
		case Warn:
			r.Summary.Warn++
		default:
			r.Summary.Info++
		}
	}
	for _, c := range Catalog() {
		switch why := c.absent(e.Deep); {
		case why == "":
			r.Checked = append(r.Checked, c.ID)
		default:
			i := slices.IndexFunc(r.NotApplicable, func(a Absent) bool { return a.Why == why })
			if i < 0 {
				i = len(r.NotApplicable)
				r.NotApplicable = append(r.NotApplicable, Absent{Why: why})
			}
			r.NotApplicable[i].CheckIDs = append(r.NotApplicable[i].CheckIDs, c.ID)
		}
	}
	return r
}
