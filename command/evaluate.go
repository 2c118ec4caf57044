package command

import (
	"errors"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Evaluate judges a command.
func (e *Evaluator) Evaluate(r *Request) *Assessment {
	v := evaluations.Get().(*evaluation)
	defer v.end()
	v.e, v.r, v.moment.r, v.out = e, r, e.resolver, &Assessment{Command: r.Command, Dir: r.Dir, Client: r.ByShell}
	v.places = r.Places
	if c, ok := r.Places.(*place.Classifier); ok {
		v.glance = c.Glance()
		v.places = &v.glance
	}
	v.where = Where{Dir: r.Dir, Home: v.getenv("HOME"), Path: v.getenv("PATH")}
	if r.Places != nil {
		v.where.Workspace = r.Places.Layout().Workspace
	}
	v.out.Hidden = shell.Obfuscations(r.Command)
	command, err := shell.Analyze(r.Command)
	refused, _ := errors.AsType[*shell.NotAnalysable](err)
	switch {
	case (err != nil || ofShell(command)) && v.script(): // what it comes to is understood
	case err == nil:
		v.out.OK, v.several = true, len(command.Segments) > 1
		v.out.Segments = v.command(command, []string{r.Dir}, 0)
	case refused != nil:
		v.out.Reason, v.out.Detail = refused.Reason, refused.Error()
	}
	v.out.Critical = critical(v.out, r.Command, &v.where)
	v.conclude()
	return v.out
}
