package command

// readsOnly reports whether the command is understood and writes no file. It decides whether the workspace is kept before the
// command runs, so all that is not plain counts as writing: a file of the project's that has the name of a reader, a variable
// that makes a reader load something.
func (a *Assessment) readsOnly() bool {
	if !a.OK {
		return false
	}
	reads := true
	eachSegment(a.Segments, func(s *Segment) {
		plain := s.Builtin == "cd" || s.Program.searched && s.Program.Hijack == ""
		if !plain || s.Blocked != "" || s.shell || len(s.Wrappers) > 0 || len(s.Assigns) > 0 || mayWriteFiles(s) {
			reads = false
		}
	})
	return reads
}
