package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

const listSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Directory to list; default is the working directory."},
    "depth": {"type": "integer", "minimum": 1, "description": "How many levels to go down; default 2."},
    "limit": {"type": "integer", "minimum": 1, "description": "How many entries to show."},
    "ignored": {"type": "boolean", "description": "Also what .gitignore excludes."}
  },
  "additionalProperties": false
}`

// listPlan is what list hands from Facts to Run.
type listPlan struct {
	asked  string
	places located
	dir    place.Resolved
	depth  int
	limit  int
	all    bool
}

func (b *Toolbox) listTool() *toolward.Tool {
	return &toolward.Tool{
		Name:        "list",
		Description: "Shows a directory as a tree. Directories end with /, symbolic links with @.",
		Schema:      json.RawMessage(listSchema),
		Facts:       b.listFacts,
		Run:         b.list,
	}
}

func (b *Toolbox) listFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan := listPlan{asked: pathOrHere(r.Params), places: at, depth: 2, limit: b.cfg.ListEntries}
	dir, target, err := at.target("path", plan.asked, toolward.OpRead)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan.dir = dir
	if n, ok := r.Params.Int("depth"); ok {
		plan.depth = int(min(max(n, 1), int64(b.cfg.ListDepth)))
	}
	if n, ok := r.Params.Int("limit"); ok {
		plan.limit = int(min(max(n, 1), int64(b.cfg.ListEntries)))
	}
	plan.all, _ = r.Params.Bool("ignored")
	return toolward.Facts{Targets: []toolward.Target{target}, Sandbox: at.sandbox(), Bound: at.bound(), Prepared: plan}, nil
}

func pathOrHere(p toolward.Params) string {
	if path := p.Text("path"); path != "" {
		return path
	}
	return "."
}

func (b *Toolbox) list(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(listPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	if plan.dir.Kind != place.KindDirectory {
		if plan.dir.Kind == place.KindMissing {
			return failed("%s does not exist", plan.asked), nil
		}
		return failed("%s is a %s, not a directory", plan.asked, plan.dir.Kind), nil
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer release()
	walk := walker{places: plan.places, disk: on, level: r.Level, root: plan.dir, ignored: plan.all, budget: b.cfg.SearchFiles}
	dir, err := walk.start()
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	tree := listTree{walk: &walk}
	root := &listNode{name: plan.asked}
	if _, err := tree.grow(ctx, root, dir, plan.depth, plan.limit); err != nil {
		return toolward.Result{}, err
	}
	var out strings.Builder
	root.print(&out, 0)
	if out.Len() == 0 {
		out.WriteString("(nothing to show)\n")
	}
	notes := walk.notes()
	if tree.left > 0 {
		notes = append(notes, fmt.Sprintf("%d entries left out; name a directory below or raise limit", tree.left))
	}
	return toolward.TextResult(out.String() + noteText(notes)), nil
}

// listTree collects a tree.
type listTree struct {
	walk *walker
	left int // entries that are not shown
}

type listNode struct {
	name     string
	children []*listNode
	unopened bool // a directory whose entries are not shown
}

// grow lists dir and what is below it, at most depth levels and room entries, closes dir and returns how many
// entries it took. Directories share the room that is left, so that the limit cuts the depths of a large directory
// and not its neighbors.
func (t *listTree) grow(ctx context.Context, node *listNode, dir *walkedDir, depth, room int) (int, error) {
	defer dir.file.Close()
	entries, err := t.walk.entries(ctx, dir)
	if err != nil {
		return 0, err
	}
	used := min(len(entries), room)
	t.left += len(entries) - used
	var below []int
	for i, entry := range entries[:used] {
		node.children = append(node.children, &listNode{name: entry.name + kindMark(entry.kind), unopened: entry.kind.IsDir()})
		if entry.kind.IsDir() && depth > 1 {
			below = append(below, i)
		}
	}
	for n, i := range below {
		share := (room - used) / (len(below) - n)
		if share == 0 || t.walk.exhausted {
			continue
		}
		opened := t.walk.open(dir, entries[i])
		if opened == nil {
			continue
		}
		child := node.children[i]
		child.unopened = false
		took, err := t.grow(ctx, child, opened, depth-1, share)
		if err != nil {
			return used, err
		}
		used += took
	}
	return used, nil
}

func kindMark(kind fs.FileMode) string {
	switch {
	case kind.IsDir():
		return "/"
	case kind&fs.ModeSymlink != 0:
		return "@"
	case kind&fs.ModeNamedPipe != 0:
		return "|"
	case kind&fs.ModeSocket != 0:
		return "="
	case kind&fs.ModeDevice != 0:
		return " (device)"
	}
	return ""
}

func (n *listNode) print(out *strings.Builder, indent int) {
	for _, child := range n.children {
		out.WriteString(strings.Repeat("  ", indent))
		out.WriteString(shownName(child.name))
		if child.unopened {
			out.WriteString(" …")
		}
		out.WriteByte('\n')
		child.print(out, indent+1)
	}
}

// shownName is a file name on one line: a line break in a name must not forge entries.
func shownName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !isShown(r) || r == '\n' || r == '\r' }) {
		return fmt.Sprintf("%q", name)
	}
	text, _ := validText(name)
	return text
}
