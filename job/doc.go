// Package job runs an understood command: programs, pipes and redirections, without a shell.
//
// Whoever judged the command fills a [Plan] with what was judged: for every segment the programs by path and
// [Identity], the expanded words, and how each redirection is opened. [Start] runs it as bash would run the same text:
//
//	plan := job.Plan{Dir: dir, Env: environment, Segments: []job.Segment{
//		{Dir: dir.Path, Programs: []job.Program{sort}, Argv: []string{"sort", "names"}, Op: job.Pipe},
//		{Dir: dir.Path, Programs: []job.Program{uniq}, Argv: []string{"uniq", "-c"}, Redirects: []job.Redirect{job.Output(1, "counts", open)}},
//	}}
//	running, err := job.Start(plan, job.Streams{Out: pipe, Err: pipe})
//	...
//	<-running.Done()
//	result := running.Result()
//	running.Release()
//
// # From a judged command to a plan
//
//   - A segment of package shell gives Op (the operators have the same text), Argv (as expanded) and Env (its
//     assignments). Programs are what the words start, each by the place where it stands: the kept wrappers, then the
//     program. The first is started from its descriptor, the others by it; all are compared with their Identity first. A
//     place.Stamp converts to an Identity.
//   - The redirections keep their order. Open is where the place check decides: it is called when the segment starts,
//     opens what was judged and nothing else, and never waits. It takes a file that an earlier segment made. [OpenNull]
//     is the one for /dev/null. A here-document is one of the redirections, in its place.
//   - "cd DIR" is a segment with Chdir and no Programs. Dir is where a segment was judged to run, by the text of the paths:
//     the plan's directory, or that of the last cd. Where a cd failed or was passed over and a later segment is
//     due nevertheless, the job ends. true, echo, printf, test and the like are real programs here.
//   - The tool keeps what it has: Streams are the pipe ends or the terminal that it made, Process is the id that it
//     shows, Stop takes the signals that its timers send, Done comes before it drains the output, and Release ends what
//     was left behind, as the last thing.
//
// # What starts is what was judged
//
// All programs of a pipeline are opened and compared before any of them starts. On Linux a binary is then executed
// through the open descriptor, so exchanging the file, a link or a directory on its path has no effect. A script is
// executed by its path directly after it was compared, because its interpreter opens it again by name; on systems other
// than Linux every program is. What was opened is looked at once more after the start, and a program that changed
// in between is killed. The working directory is entered through its descriptor.
//
// No descriptor but 0, 1 and 2 reaches a program.
//
// # What differs from bash
//
// There are no functions, aliases and built-in commands but cd. SHLVL and _ are not set. A file that the system cannot
// execute is not given to a shell as a script: status 126. A segment after a cd that failed or was passed over, a redirection or a directory that is refused, and a program
// that changed, end the whole job: what follows "||" or ";" was judged to run after something else.
package job
