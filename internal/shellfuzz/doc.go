// Package shellfuzz compares what package shell says of commands with what a real bash does with them.
//
// A [Generator] makes commands that analysers tend to get wrong. [Bash.Understand] analyses and expands one as it would
// be before it is approved, and claims what it will start, read and write. [Bash.Run] gives the same text to a bash in
// a sandbox where nothing ever starts: a library that is loaded into it writes down every program that would have, with
// its argv, directory, environment, standard streams and input, and every file that bash opened. [Bash.Compare] looks
// for what bash did and the claim does not say. What analysis refuses is not run; nothing is claimed of it.
//
// It is only used by tests, and needs Linux, bash, a C compiler and the right to make name spaces.
package shellfuzz
