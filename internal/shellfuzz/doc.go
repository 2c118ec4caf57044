// Package shellfuzz compares what is said of commands with what a real bash, and other shells, do with them.
//
// A [Generator] makes commands that analyzers tend to get wrong, and mutations of those that people and attackers type. Each
// is judged by package command as the gateway would, in a sandbox where every program is there and every file may be
// used; that is a [Claim] of what it will start, with which words, where, connected how, and which files it opens. What
// is refused is not run, and nothing is claimed of it.
//
// [Bash.Run] gives the same text to a bash in that sandbox, where nothing ever starts: a library that is loaded into it
// writes down every process that it makes, every program that would have started, with its argv, directory, environment,
// standard streams and input, every file that it opened, and how every process ended. [Bash.Compare] goes through the
// claim as a shell would, and through these steps, process by process: nothing may be left over on either side. Only how
// a builtin ended is guessed, because no process tells.
//
// Then package job runs the claim, with real processes in the same sandbox, and must leave what bash left: standard
// output, exit status, files.
//
// A zsh, a dash and a busybox in such sandboxes ([NewOther]) run what analysis says of texts that somebody else's shell would run: it must do nothing
// that is not claimed ([Bash.Exceeds]).
//
// Texts of several commands are run by bash as they are given and as what runs in their place ([Bash.Comes]).
//
// It is only used by tests, and needs Linux, bash, for the last part zsh, dash and a busybox with libraries, a C compiler and the right to make name spaces.
package shellfuzz
