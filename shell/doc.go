// Package shell tells what a shell command would start and do, without running it.
//
// [Analyze] reads a command line with a real grammar and accepts an allowlist of constructs: simple commands joined by
// "|", "&&", "||" and ";", quotes, plain parameters, globs, file redirections and here-documents. Everything else is
// refused with a [Reason]. What is refused is not "dangerous" and what is accepted is not "safe": accepted means that
// the [Command] lists every program that would start, so that whoever decides can look at each. [Unwrap] looks behind
// programs that only start another one, [Obfuscations] finds text that hides what it is. What a program does with its
// arguments is an [Effect]: package profiles finds them.
//
// The package is pure: it reads no files, no environment and no clock.
package shell
