package command

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/toolward/toolward/command/binding"
	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// byShell says why a shell has to run the command as it is written; "" if package job can run what was judged.
func (a *Assessment) byShell() string {
	if !a.OK {
		return "it is not understood"
	}
	for i := range a.Segments {
		if why := a.Segments[i].byShell(); why != "" {
			return why
		}
	}
	return ""
}

func (s *Segment) byShell() string {
	switch {
	case s.Before+s.After != "", s.Builtin != "" && s.Builtin != "cd", len(s.dynamic) > 0:
		return "it has groups, conditions, variables or what commands print"
	case s.Builtin == "cd":
		return ""
	case s.Program.Word == "":
		return s.Blocked
	case slices.Contains(shellBuiltins, s.Program.Word):
		return s.Program.Word + " is a command of the shell itself"
	case !s.Program.Found():
		return "there is no program " + s.Program.Word
	case s.refuses(Expansion):
		return "only a shell knows what its words mean"
	}
	for i := range s.Wrappers {
		if w := &s.Wrappers[i]; !w.Program.Found() {
			return "there is no program " + w.Name
		}
	}
	for i := range s.Redirs {
		r := &s.Redirs[i]
		switch {
		case s.Heredoc != nil && r.Reads():
			return "it has two standard inputs"
		case r.Harmless(), r.File.Kind == place.KindRegular, r.File.Kind == place.KindMissing && r.File.Real != "":
		default:
			return r.String() + " is not about a plain file"
		}
	}
	return ""
}

// Plan is what package job runs: the programs, words and files that were judged. env is the whole environment. It fails
// if something is not as it was when it was judged.
func (a *Assessment) Plan(dir place.Resolved, places Places, env []string) (job.Plan, error) {
	if a.ByShell != "" {
		return job.Plan{}, errors.New(a.ByShell)
	}
	plan := job.Plan{Env: env, Segments: make([]job.Segment, len(a.Segments)), Dir: judgedDirectory(a.Dir, a.Dir, dir)}
	for i := range a.Segments {
		if err := a.Segments[i].plan(&plan.Segments[i], places); err != nil {
			return job.Plan{}, err
		}
	}
	return plan, nil
}

// ShellText is what a shell gets that runs the command: what was judged if the text stands for more than it says, else the
// text as it was given.
func (a *Assessment) ShellText() string {
	if a.Script && a.Enforced != "" {
		return a.Enforced
	}
	return a.Command
}

// ShellPlan is what package job runs where a shell gets the text as it is written.
func ShellPlan(shell, text string, dir place.Resolved, env []string) (job.Plan, error) {
	identity, err := job.Identify(shell)
	if err != nil {
		return job.Plan{}, err
	}
	return job.Plan{Env: env, Dir: judgedDirectory(dir.Real, dir.Real, dir), Segments: []job.Segment{{
		Dir: dir.Real, Programs: []job.Program{{Path: shell, Identity: identity}},
		// "--" keeps a text that begins with a dash from being taken for options of the shell.
		Argv: []string{shell, "-c", "--", text},
	}}}, nil
}

func (s *Segment) plan(out *job.Segment, places Places) error {
	out.Dir, out.Op = s.Dir, job.Operator(s.Op)
	if s.Builtin == "cd" {
		to, err := places.Resolve(s.Dir, s.Target)
		if err != nil {
			return err
		}
		dir := judgedDirectory(s.Args[0], s.Target, to)
		out.Argv, out.Chdir = s.Argv, &dir
		return nil
	}
	for _, v := range s.Assigns {
		out.Env = append(out.Env, v.Name+"="+v.Value)
	}
	if s.Heredoc != nil {
		out.Redirects = append(out.Redirects, job.Document(*s.Heredoc))
	}
	for i := range s.Redirs {
		out.Redirects = append(out.Redirects, s.Redirs[i].plan())
	}
	out.Again = s.again(places)
	return s.planPrograms(out)
}

// planPrograms lists the programs, wrappers first. A wrapper that does nothing is left out.
func (s *Segment) planPrograms(out *job.Segment) error {
	for i := range s.Wrappers {
		w := &s.Wrappers[i]
		if w.Dropped {
			continue
		}
		if err := addProgram(out, &w.Program); err != nil {
			return err
		}
		out.Argv = append(append(out.Argv, w.Program.Word), w.Args...)
	}
	if err := addProgram(out, &s.Program); err != nil {
		return err
	}
	argv := slices.Clone(s.Argv[s.at:])
	if s.Script != "" {
		argv[s.ScriptArg-s.at] = s.Script // the programs in it by the paths that were judged
	}
	out.Argv = append(out.Argv, argv...)
	return nil
}

func addProgram(out *job.Segment, p *Program) error {
	identity, err := job.Identify(p.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Word, err)
	}
	out.Programs = append(out.Programs, job.Program{Path: p.Path, Identity: identity, At: len(out.Argv)})
	return nil
}

func (r *Redirect) plan() job.Redirect {
	fd := 1
	if r.Reads() {
		fd = 0
	}
	if r.FD != "" {
		fd = int(r.FD[0] - '0')
	}
	open := job.OpenNull
	file := r.File
	switch {
	case r.Op == ">&":
		return job.Copy(fd, int(r.Target[0]-'0'))
	case file.Real == "": // harmless: /dev/null
	case r.Reads():
		open = func() (*os.File, error) { return place.OpenInput(file) }
	default:
		open = func() (*os.File, error) { return place.OpenOutput(file, r.Op == ">>" || r.Op == "&>>") }
	}
	switch {
	case r.Reads():
		return job.Input(fd, r.Target, open)
	case r.Op == "&>" || r.Op == "&>>":
		return job.OutputBoth(r.Target, open)
	}
	return job.Output(fd, r.Target, open)
}

// judgedDirectory is a directory as it was judged: no link may lead to it by now, and one that was there must be the
// same. One that was missing may have been made by an earlier part of the command.
func judgedDirectory(name, path string, judged place.Resolved) job.Directory {
	return job.Directory{Name: name, Path: path, Open: func() (*os.File, error) {
		there := judged
		if judged.Kind == place.KindMissing {
			there.Kind = place.KindDirectory
		}
		dir, err := place.OpenDir(there)
		if err != nil || judged.Kind == place.KindMissing {
			return dir, err
		}
		if err := place.SameDirectory(dir, judged); err != nil {
			_ = dir.Close() // nothing was done with it
			return nil, err
		}
		return dir, nil
	}}
}

// Bindable is what an approval of the command holds on to. call says who asks, and in which environment.
func (a *Assessment) Bindable(call binding.Bindable) binding.Bindable {
	call.Text = ""
	if a.ByShell != "" {
		call.Text = a.Command
	}
	call.Commands = appendBindable(nil, a.Segments)
	return call
}

func appendBindable(list []binding.BindableCommand, segments []Segment) []binding.BindableCommand {
	for i := range segments {
		s := &segments[i]
		if s.Builtin != "" {
			continue
		}
		for j := range s.Wrappers {
			w := &s.Wrappers[j]
			list = append(list, binding.BindableCommand{Argv: append([]string{w.Program.Word}, w.Args...), Path: w.Program.Path, Dir: s.Dir})
		}
		list = append(list, binding.BindableCommand{
			Argv: s.Argv, Path: s.Program.Path, Dir: s.Dir, OtherDirs: s.OtherDir, Inputs: s.inputs(), Fed: fed(segments[:i]),
		})
		list = appendBindable(list, s.Inner)
		for j := range s.Effects {
			if runs := s.Effects[j].Runs; runs != nil {
				list = appendBindable(list, []Segment{*runs})
			}
		}
	}
	return list
}

// inputs are the files that the segment reads as its input.
func (s *Segment) inputs() (files []string) {
	for i := range s.Redirs {
		if r := &s.Redirs[i]; r.Reads() && r.File.Real != "" {
			files = append(files, r.File.Real)
		}
	}
	return files
}

// fed are the commands that stand before one in its pipeline.
func fed(before []Segment) (argvs [][]string) {
	for i := len(before) - 1; i >= 0 && before[i].Op == shell.Pipe; i-- {
		argvs = append(argvs, before[i].Argv)
	}
	return argvs
}
