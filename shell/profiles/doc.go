// Package profiles knows what programs do with their arguments: which of them name files that are read or written, which
// are commands, code or hosts. A [Profile] is data, in the *.txt files of this folder; docs/profiles.md is their language.
// What data cannot say is a check, in check_*.go: it looks closer at the arguments of one program, and only adds effects.
package profiles
