package builtin

import (
	"regexp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/sandbox/light"
)

// Confiner confines what runs on this machine and no person saw in this form; *[light.Light] does.
type Confiner interface {
	Check() light.Check
	Confine(*job.Plan, *light.Scene) error
}

// unseen reports whether nobody may have seen a command of this machine as it would run: what an entry, a preset or a rule
// covers can be more than it seems, as code of the project is.
func (b *Toolbox) unseen(plan *execPlan) bool {
	return b.deps.Light != nil && plan.box == nil && (plan.ruling == nil || !plan.ruling.Exact())
}

// lightFindings say why a command asks that cannot be confined. Who is asked sees it, and what was seen is not confined.
func (b *Toolbox) lightFindings(plan *execPlan, facts *toolward.Facts) {
	if !b.unseen(plan) {
		return
	}
	if check := b.deps.Light.Check(); check.Mode == light.None {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "command_unconfined", Effect: toolward.EffectAsk,
			Detail: "this machine cannot keep it from keys and from Toolward's own files: " + check.Found + "; mend it: " + check.Fix +
				", or set tools.exec.lightConfinement to false",
		})
		return
	}
	if plan.ruling == nil {
		return
	}
	for _, part := range plan.ruling.Starts() {
		for _, start := range part {
			if light.Unfit(start.Program) {
				facts.Findings = append(facts.Findings, toolward.Finding{
					Code: "command_unconfined", Effect: toolward.EffectAsk, Detail: start.Program + " works only where nothing is kept from it",
				})
				return
			}
		}
	}
}

// confineLightly confines a command that nobody saw.
func (b *Toolbox) confineLightly(r *toolward.Request, plan *execPlan) error {
	if r.Seen || !b.unseen(plan) {
		return nil
	}
	at, err := b.locateHere(r)
	if err != nil {
		return err
	}
	plan.light = true
	return b.deps.Light.Confine(&plan.job, plan.scene(at.Classifier))
}

// keptAway is what programs say when they miss what was kept from them.
var keptAway = regexp.MustCompile(`(?i)read-only file system|device or resource busy|\bEROFS\b|\bEBUSY\b|publickey|host key verification failed|` +
	`could not read username|cannot connect to the docker daemon|no new privileges|must be setuid root|effective uid is not 0|no secret key|gpg failed to sign`)

// lightHint tells what may have kept a command from its work, and how it gets there.
func lightHint(output string) string {
	if !keptAway.MatchString(output) {
		return ""
	}
	return "(No person saw this command, so keys, settings that other programs obey and other processes were kept from it. If it needs them, " +
		"have a person allow exactly this command: toolward approvals, or an entry with its argv)"
}

// scene is what a confinement must know of a command.
func (p *execPlan) scene(places *place.Classifier) *light.Scene {
	scene := &light.Scene{Layout: places.Layout(), Dir: p.dir.Real}
	if p.ruling == nil {
		return scene
	}
	scene.Named = p.ruling.Named(places)
	for _, part := range p.ruling.Starts() {
		calls := make([]light.Call, len(part))
		for i, start := range part {
			calls[i] = light.Call(start)
		}
		scene.Calls = append(scene.Calls, calls)
	}
	return scene
}
