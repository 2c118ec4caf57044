package command

import (
	"slices"

	"github.com/toolward/toolward/sandbox"
)

// Literal is the command for a sandbox, where its programs are looked up inside: nil where only a shell knows what the
// words mean there, because some of them stand for other words or files.
func (a *Assessment) Literal() []sandbox.Segment {
	if !a.OK {
		return nil
	}
	segments := make([]sandbox.Segment, 0, len(a.Segments))
	for i := range a.Segments {
		segment, ok := a.Segments[i].literal()
		if !ok {
			return nil
		}
		segments = append(segments, segment)
	}
	return segments
}

func (s *Segment) literal() (out sandbox.Segment, ok bool) {
	switch {
	case s.Builtin != "", s.Program.Word == "", slices.Contains(shellBuiltins, s.Program.Word), s.refuses(Expansion):
		return out, false
	case len(s.Expanded) > 0, len(s.Findings) > 0, s.globs, s.Script != "":
		return out, false
	}
	out = sandbox.Segment{Argv: s.Argv, Operator: string(s.Op)}
	for _, v := range s.Assigns {
		out.Env = append(out.Env, v.Name+"="+v.Value)
	}
	if s.Heredoc != nil {
		out.Redirects = append(out.Redirects, sandbox.Redirect{Kind: sandbox.RedirectText, Text: *s.Heredoc})
	}
	for i := range s.Redirs {
		r, ok := s.Redirs[i].literal()
		if !ok {
			return out, false
		}
		out.Redirects = append(out.Redirects, r)
	}
	return out, true
}

func (r *Redirect) literal() (out sandbox.Redirect, ok bool) {
	out = sandbox.Redirect{FD: 1, Path: r.Target}
	if r.Reads() {
		out.FD = 0
	}
	if r.FD != "" {
		out.FD = int(r.FD[0] - '0')
	}
	switch r.Op {
	case ">&":
		out.Kind, out.From, out.Path = sandbox.RedirectCopy, int(r.Target[0]-'0'), ""
	case "<":
		out.Kind = sandbox.RedirectIn
	case ">":
		out.Kind = sandbox.RedirectOut
	case ">>":
		out.Kind = sandbox.RedirectAppend
	default:
		return out, false
	}
	return out, true
}
