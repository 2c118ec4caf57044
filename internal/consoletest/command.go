package consoletest

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
)

// machine is a machine on which commands are judged and never run: the usual programs, and the files of a shop.
type machine struct{ *place.Classifier }

const shop = "/home/ada/shop"

// commandFacts are the facts of exec, with or without anybody who judges commands.
func commandFacts(judged bool) func(context.Context, *toolward.Request) (toolward.Facts, error) {
	if judged {
		return judgeCommand
	}
	return func(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
		return toolward.Facts{Command: r.Params.Text("command"), Mutates: true}, nil
	}
}

// judgeCommand has the command judged by the real parts, under the preset developer.
func judgeCommand(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
	facts := toolward.Facts{Command: r.Params.Text("command"), Mutates: true}
	classifier, err := place.New(place.Layout{Workspace: shop, Home: "/home/ada", StateDir: "/home/ada/.toolward", ConfigFile: "/home/ada/.toolward/toolward.jsonc"})
	if err != nil {
		return facts, err
	}
	m := machine{classifier}
	evaluator, _, err := command.New(command.Policy{Preset: command.Developer}, "/home/ada", command.NewResolver(m))
	if err != nil {
		return facts, err
	}
	assessment := evaluator.Evaluate(&command.Request{
		Command: facts.Command, Dir: shop, Level: r.Level, Places: m,
		Getenv: func(name string) (string, bool) {
			value, ok := map[string]string{"HOME": "/home/ada", "PATH": "/usr/local/bin:/usr/bin", "PWD": shop}[name]
			return value, ok
		},
	})
	ruling := &command.Ruling{Assessment: assessment}
	facts.Analysis, facts.Findings = ruling.Analysis(), ruling.CallFindings()
	facts.Prepared = assessment
	return facts, nil
}

func outlineOf(r *toolward.Request) *display.Outline {
	if assessment, ok := r.Facts.Prepared.(*command.Assessment); ok {
		return assessment.Outline()
	}
	return nil
}

// remember is the allowlist: nothing reads it.
func remember(context.Context, string, []toolward.CommandEntry) error { return nil }

// Look knows programs of /usr/bin by their names, and directories.
func (machine) Look(name string) (command.Node, error) {
	programs := strings.Fields("git npm node rm cp curl sh cat grep head sort make go tar env timeout")
	switch dir, base := path.Split(name); {
	case dir == "/usr/bin/":
		for _, p := range programs {
			if p == base {
				return command.Node{Mode: 0o755}, nil
			}
		}
	case name == "/" || strings.HasPrefix(shop+"/", name+"/") || name == "/usr" || name == "/usr/bin" || name == shop+"/dist.new":
		return command.Node{Mode: fs.ModeDir | 0o755}, nil
	case dir == shop+"/" && strings.Contains(base, "."):
		return command.Node{Mode: 0o644}, nil
	}
	return command.Node{}, fs.ErrNotExist
}

// ReadDir lists the shop.
func (machine) ReadDir(string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }

// GitPointer finds none.
func (machine) GitPointer(string) (string, error) { return "", fs.ErrNotExist }

// Resolve follows no links: there are none.
func (m machine) Resolve(dir, asked string) (place.Resolved, error) {
	if asked == "" {
		return place.Resolved{}, errors.New("no path")
	}
	if !path.IsAbs(asked) {
		asked = path.Join(dir, asked)
	}
	r := place.Resolved{Asked: asked, Real: path.Clean(asked), Kind: place.KindMissing}
	r.Zone = m.Classify(r.Real)
	if node, err := m.Look(r.Real); err == nil {
		r.Kind = place.KindRegular
		if node.Mode.IsDir() {
			r.Kind = place.KindDirectory
		}
	}
	return r, nil
}
