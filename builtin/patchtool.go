package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
)

const patchSchema = `{
  "type": "object",
  "properties": {
    "patch": {"type": "string", "description": "The whole patch, from *** Begin Patch to *** End Patch."}
  },
  "required": ["patch"],
  "additionalProperties": false
}`

const patchDescription = `Changes several files at once, all or none. The patch has this form:
*** Begin Patch
*** Add File: path        (every line after it starts with +)
*** Delete File: path
*** Update File: path
*** Move to: new path     (optional)
@@ a line of the file     (optional; the hunk is looked for after it)
 a line that stays        (three lines of context around a change)
-a line to remove
+a line to add
*** End of File           (optional; the hunk ends the file)
*** End Patch`

// patchPlan is what apply_patch hands from Facts to Run: the parsed sections with their resolved paths.
type patchPlan struct {
	places located
	steps  []patchStep
}

type patchStep struct {
	patchFile
	at place.Resolved
	to place.Resolved // with a new path
}

func (b *Toolbox) patchTool() *toolward.Tool {
	return &toolward.Tool{
		Name:        "apply_patch",
		Description: patchDescription,
		Schema:      json.RawMessage(patchSchema),
		Facts:       b.patchFacts,
		Diff:        b.patchDiff,
		Run:         b.applyPatch,
	}
}

func (b *Toolbox) patchFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	files, err := parsePatch(r.Params.Text("patch"), b.cfg.PatchFiles)
	if err != nil {
		return toolward.Facts{}, &toolward.InvalidArgs{Field: "patch", Text: err.Error()}
	}
	facts := toolward.Facts{Mutates: true, Sandbox: at.sandbox(), Bound: at.bound()}
	plan := patchPlan{places: at, steps: make([]patchStep, 0, len(files))}
	for _, file := range files {
		step, targets, err := at.patchStep(file)
		if err != nil {
			return toolward.Facts{}, err
		}
		if file.op == patchDelete {
			facts.Deletes++
		}
		plan.steps = append(plan.steps, step)
		facts.Targets = append(facts.Targets, targets...)
	}
	facts.Prepared, facts.Takes = plan, at.takesTargets(facts.Targets)
	return facts, nil
}

// patchStep resolves the paths of one section. Every operation of the section is a target of its own, so that a
// grant for writing does not cover deleting or moving.
func (l located) patchStep(file patchFile) (patchStep, []toolward.Target, error) {
	step := patchStep{patchFile: file}
	field := fmt.Sprintf("patch line %d", file.line)
	var target toolward.Target
	var err error
	switch {
	case file.op == patchDelete:
		step.at, target, err = l.entry(field, file.path, toolward.OpDelete)
	case file.move != "":
		step.at, target, err = l.entry(field, file.path, toolward.OpMove)
	default:
		step.at, target, err = l.target(field, file.path, toolward.OpWrite)
	}
	if err != nil {
		return step, nil, err
	}
	targets := []toolward.Target{target}
	if file.move != "" {
		step.to, target, err = l.target(field, file.move, toolward.OpMove)
		if err != nil {
			return step, nil, err
		}
		targets = append(targets, target)
		if len(file.hunks) > 0 {
			target.Op = toolward.OpWrite
			targets = append(targets, target)
		}
	}
	return step, targets, nil
}

func (b *Toolbox) patchDiff(ctx context.Context, r *toolward.Request) (string, error) {
	plan, ok := r.Facts.Prepared.(patchPlan)
	if !ok {
		return "", errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	change, err := b.planned(on, plan)
	if err != nil {
		return "", err
	}
	w := display.NewDiff(maxDiff)
	for _, file := range change.files {
		before, after := file.at.Real, file.at.Real
		if !file.existed {
			before = "/dev/null"
		}
		if !file.exists {
			after = "/dev/null"
		}
		if file.existed || file.exists {
			w.File(before, after, file.before, file.now)
		}
	}
	return w.String(), nil
}

func (b *Toolbox) applyPatch(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(patchPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return failed("Nothing was changed: %v", err), nil
	}
	defer release()
	change, err := b.planned(on, plan)
	if err != nil {
		return failed("Nothing was changed: %v", err), nil
	}
	if err := ctx.Err(); err != nil {
		return toolward.Result{}, err
	}
	if err := change.commit(); err != nil {
		return failed("%v", err), nil
	}
	return toolward.TextResult(summary(plan)), nil
}

func summary(plan patchPlan) string {
	var b strings.Builder
	b.WriteString("Done. All files were changed:\n")
	for _, step := range plan.steps {
		switch {
		case step.op == patchAdd:
			fmt.Fprintf(&b, "A %s\n", step.path)
		case step.op == patchDelete:
			fmt.Fprintf(&b, "D %s\n", step.path)
		case step.move != "":
			fmt.Fprintf(&b, "M %s -> %s\n", step.path, step.move)
		default:
			fmt.Fprintf(&b, "M %s\n", step.path)
		}
	}
	return b.String()
}

// planned applies all sections in memory, in order, to the files as they are now. Nothing is written unless all of
// them fit.
func (b *Toolbox) planned(on disk, plan patchPlan) (*patchChange, error) {
	change := &patchChange{disk: on, byPath: map[string]*patchedFile{}, fileLimit: int64(b.cfg.FileBytes), room: 8 * int64(b.cfg.FileBytes)}
	for _, step := range plan.steps {
		if err := change.add(step); err != nil {
			var misfit *patchError
			if errors.As(err, &misfit) {
				return nil, fmt.Errorf("%s: %w", step.path, err)
			}
			return nil, fmt.Errorf("patch line %d: %s: %w", step.line, step.path, err)
		}
	}
	return change, nil
}
