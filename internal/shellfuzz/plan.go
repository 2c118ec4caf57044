//go:build linux

package shellfuzz

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolward/toolward/job"
	"github.com/toolward/toolward/shell"
)

func directory(dir string) job.Directory {
	return job.Directory{Name: dir, Path: dir, Open: func() (*os.File, error) {
		return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	}}
}

// planned is a stage as the executor runs it: without env, which does nothing, and with the text that a shell is given
// in the place of its script.
func planned(st *stage) (job.Segment, error) {
	s := st.segment
	out := job.Segment{Dir: s.Dir}
	for _, a := range s.Assigns {
		out.Env = append(out.Env, a.Name+"="+a.Value)
	}
	if s.Heredoc != nil {
		out.Redirects = append(out.Redirects, job.Document(*s.Heredoc))
	}
	for _, r := range s.Redirs {
		out.Redirects = append(out.Redirects, redirect(r.Redirect, s.Dir))
	}
	if s.Builtin == "cd" {
		target := directory(s.Target)
		out.Chdir, out.Argv = &target, s.Argv
		return out, nil
	}
	add := func(path string, words ...string) error {
		identity, err := job.Identify(path)
		out.Programs = append(out.Programs, job.Program{Path: path, Identity: identity, At: len(out.Argv)})
		out.Argv = append(out.Argv, words...)
		return err
	}
	at := 0
	for _, w := range s.Wrappers {
		if !w.Dropped {
			if err := add(w.Program.Path, s.Argv[at:at+1+len(w.Args)]...); err != nil {
				return out, err
			}
		}
		at += 1 + len(w.Args)
	}
	words := slices.Clone(s.Argv[at:])
	if st.inner != nil {
		words[s.ScriptArg-at] = s.Script
	}
	return out, add(s.Program.Path, words...)
}

func redirect(r shell.Redirect, dir string) job.Redirect {
	fds, from := descriptors(r)
	if from >= 0 {
		return job.Copy(fds[0], from)
	}
	flags := os.O_RDONLY
	switch {
	case strings.HasSuffix(r.Op, ">>"):
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	case r.Writes():
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	path := r.Target // as it is: bash writes no file by a name that ends in a slash
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	open := func() (*os.File, error) { return os.OpenFile(path, flags, 0o644) }
	if r.Target == os.DevNull {
		open = job.OpenNull
	}
	switch {
	case strings.HasPrefix(r.Op, "&"):
		return job.OutputBoth(r.Target, open)
	case r.Reads():
		return job.Input(fds[0], r.Target, open)
	}
	return job.Output(fds[0], r.Target, open)
}
