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
//     place.Stamp converts to an Identity; [Identify] makes one.
//   - The redirections keep their order. Open is where the place check decides: place.OpenInput and place.OpenOutput open
//     what was judged and nothing else, never wait, and take a file that an earlier segment has made. [OpenNull] is for
//     /dev/null. A here-document is one of the redirections, in its place.
//   - "cd DIR" is a segment with Chdir and no Programs. true, echo, printf, test, pwd and the like are real programs here.
//   - Dir is where a segment was judged to run: the path of the plan's directory or of the last cd, letter for letter.
//     Where a cd failed or was passed over and a later segment is due nevertheless, the job ends.
//   - The tool keeps what it has: Streams are the pipe ends or the terminal that it made, Process is the id that it
//     shows, Stop takes the signals that its timers send, Done comes before it drains the output, and Release ends what
//     was left behind, as the last thing.
//   - Again is asked just before a segment starts: what its paths mean may have been changed by one before it. Elsewhere
//     starts its program in a place of its own (sandbox/light), which ends with the job; everything else stays as it is here.
//
// # What starts is what was judged
//
// All programs of a pipeline are opened and compared, and its redirections opened, before any of them starts. On Linux
// a binary is then executed through the open descriptor, so exchanging the file, a link or a directory on its path
// has no effect. (What only root could exchange, and we are not root, is executed by its path: it keeps its name in lists of
// processes.) A script is executed by its path directly after it was compared, because its interpreter opens it again by
// name; so is the program behind a wrapper, and on systems other than Linux every program. All are compared once more
// after the start, and the job is killed if one changed in between. The working directory is entered through its
// descriptor. No descriptor but 0, 1 and 2 reaches a program.
//
// # What differs from bash
//
// There are no functions, aliases and built-in commands but cd: the program pwd follows links, the builtin does not.
// SHLVL and _ are not set. A file that the system cannot execute is not given to a shell as a script: status 126. A
// refusal ends the whole job, because what follows "||" or ";" was judged to run after something else: a program that
// changed, a file or directory that is not the one judged, a segment after a cd that did not happen.
package job
