package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
)

const writeSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "File to write; missing directories are created."},
    "content": {"type": "string", "description": "The whole new content of the file."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

// writePlan is what write hands from Facts to Run.
type writePlan struct {
	asked   string
	places  located
	file    place.Resolved
	content string
}

func (b *Toolbox) writeTool() *toolward.Tool {
	return &toolward.Tool{
		Name:        "write",
		Description: "Creates a file or replaces its whole content, all or nothing. To change parts of a file use edit or apply_patch.",
		Schema:      json.RawMessage(writeSchema),
		Facts:       b.writeFacts,
		Diff:        b.writeDiff,
		Run:         b.write,
	}
}

func (b *Toolbox) writeFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan := writePlan{asked: r.Params.Text("path"), places: at, content: r.Params.Text("content")}
	if len(plan.content) > b.cfg.FileBytes {
		return toolward.Facts{}, &toolward.InvalidArgs{Field: "content", Text: fmt.Sprintf("is longer than %d bytes", b.cfg.FileBytes)}
	}
	file, target, err := at.target("path", plan.asked, toolward.OpWrite)
	if err != nil {
		return toolward.Facts{}, err
	}
	if err := at.mustBeFile("path", file, true); err != nil {
		return toolward.Facts{}, err
	}
	plan.file = file
	targets := []toolward.Target{target}
	return toolward.Facts{Targets: targets, Takes: at.takesTargets(targets), Sandbox: at.sandbox(), Bound: at.bound(), Mutates: true, Prepared: plan}, nil
}

// maxDiff is how long a difference for people may be, in bytes.
const maxDiff = 64 << 10

func (b *Toolbox) writeDiff(ctx context.Context, r *toolward.Request) (string, error) {
	plan, ok := r.Facts.Prepared.(writePlan)
	if !ok {
		return "", errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	before, name, err := b.present(on, plan.file)
	if err != nil {
		return "", err
	}
	w := display.NewDiff(maxDiff)
	w.File(name, plan.file.Real, before, plan.content)
	return w.String(), nil
}

// present returns the content of a file as it is now, and its name for a difference; "" and /dev/null if there is
// none.
func (b *Toolbox) present(on disk, file place.Resolved) (content, name string, err error) {
	if file.Kind == place.KindMissing {
		return "", "/dev/null", nil
	}
	was, err := on.readFile(file, int64(b.cfg.FileBytes))
	if err != nil {
		return "", "", err
	}
	return string(was.Data), file.Real, nil
}

func (b *Toolbox) write(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(writePlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer release()
	if err := on.writeFile(plan.file, []byte(plan.content), place.WriteOptions{Parents: true}); err != nil {
		return fileFailure(plan.asked, err), nil
	}
	verb := "Replaced"
	if plan.file.Kind == place.KindMissing {
		verb = "Created"
	}
	return toolward.TextResult(fmt.Sprintf("%s %s: %d bytes.", verb, plan.asked, len(plan.content))), nil
}

const editSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "File to change."},
    "oldText": {"type": "string", "description": "Exact text to replace, with enough around it to stand in one place only."},
    "newText": {"type": "string", "description": "Text that takes its place; may be empty."},
    "replaceAll": {"type": "boolean", "description": "Replace every occurrence of oldText."},
    "edits": {
      "type": "array",
      "description": "Further replacements in the same file, applied in order after the first; all or none are made.",
      "items": {
        "type": "object",
        "properties": {
          "oldText": {"type": "string"},
          "newText": {"type": "string"},
          "replaceAll": {"type": "boolean"}
        },
        "required": ["oldText", "newText"],
        "additionalProperties": false
      }
    }
  },
  "required": ["path", "oldText", "newText"],
  "additionalProperties": false
}`

// editPlan is what edit hands from Facts to Run.
type editPlan struct {
	asked  string
	places located
	file   place.Resolved
	edits  []replacement
}

func (b *Toolbox) editTool() *toolward.Tool {
	return &toolward.Tool{
		Name: "edit",
		Description: "Replaces exact texts in a file. oldText must stand in exactly one place unless replaceAll is set. " +
			"Line ends are matched whatever they are and kept as they are.",
		Schema: json.RawMessage(editSchema),
		Facts:  b.editFacts,
		Diff:   b.editDiff,
		Run:    b.edit,
	}
}

func (b *Toolbox) editFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan := editPlan{asked: r.Params.Text("path"), places: at}
	if plan.edits, err = b.replacements(r.Params); err != nil {
		return toolward.Facts{}, err
	}
	file, target, err := at.target("path", plan.asked, toolward.OpWrite)
	if err != nil {
		return toolward.Facts{}, err
	}
	if err := at.mustBeFile("path", file, true); err != nil {
		return toolward.Facts{}, err
	}
	plan.file = file
	targets := []toolward.Target{target}
	return toolward.Facts{Targets: targets, Takes: at.takesTargets(targets), Sandbox: at.sandbox(), Bound: at.bound(), Mutates: true, Prepared: plan}, nil
}

// replacements reads the first replacement and the further ones.
func (b *Toolbox) replacements(p toolward.Params) ([]replacement, error) {
	all, _ := p.Bool("replaceAll")
	edits := []replacement{{old: p.Text("oldText"), new: p.Text("newText"), all: all}}
	list, _ := p.Value("edits").([]any)
	if len(list) >= b.cfg.Edits {
		return nil, &toolward.InvalidArgs{Field: "edits", Text: fmt.Sprintf("has more than %d replacements", b.cfg.Edits)}
	}
	for i, item := range list {
		fields, ok := item.(map[string]any)
		edit := replacement{}
		if ok {
			var oldOK, newOK bool
			edit.old, oldOK = fields["oldText"].(string)
			edit.new, newOK = fields["newText"].(string)
			edit.all, _ = fields["replaceAll"].(bool)
			ok = oldOK && newOK
		}
		if !ok {
			return nil, &toolward.InvalidArgs{Field: fmt.Sprintf("edits[%d]", i), Text: "needs the texts oldText and newText"}
		}
		edits = append(edits, edit)
	}
	return edits, nil
}

// edited returns the content before and after, and the stamp that the file must still have when it is written.
func (b *Toolbox) edited(on disk, plan editPlan) (before, after string, places int, stamp place.Stamp, err error) {
	content, err := on.readFile(plan.file, int64(b.cfg.FileBytes))
	if err != nil {
		return "", "", 0, stamp, err
	}
	before, stamp = string(content.Data), content.Stamp
	if found := detectEncoding([]byte(head(before))); found != encodingUTF8 {
		return "", "", 0, stamp, &unfit{fmt.Sprintf("the file is %s; only UTF-8 texts can be edited", found)}
	}
	after, places, err = replaceTexts(before, plan.edits, b.cfg.FileBytes)
	if err != nil {
		return "", "", 0, stamp, &unfit{err.Error()}
	}
	return before, after, places, stamp, nil
}

// unfit is the error of a change that does not fit the file.
type unfit struct{ text string }

func (e *unfit) Error() string { return e.text }

func (b *Toolbox) editDiff(ctx context.Context, r *toolward.Request) (string, error) {
	plan, ok := r.Facts.Prepared.(editPlan)
	if !ok {
		return "", errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	before, after, _, _, err := b.edited(on, plan)
	if err != nil {
		return "", err
	}
	w := display.NewDiff(maxDiff)
	w.File(plan.file.Real, plan.file.Real, before, after)
	return w.String(), nil
}

func (b *Toolbox) edit(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(editPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer release()
	_, after, places, stamp, err := b.edited(on, plan)
	var misfit *unfit
	switch {
	case errors.As(err, &misfit):
		return failed("%s was not changed: %s", plan.asked, misfit.text), nil
	case err != nil:
		return fileFailure(plan.asked, err), nil
	}
	// The stamp keeps a change that somebody else made since the file was read.
	if err := on.writeFile(plan.file, []byte(after), place.WriteOptions{Unchanged: &stamp}); err != nil {
		return fileFailure(plan.asked, err), nil
	}
	return toolward.TextResult(fmt.Sprintf("Changed %s in %d %s: %d bytes.", plan.asked, places, plural(places, "place"), len(after))), nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
