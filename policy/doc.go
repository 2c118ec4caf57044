// Package policy decides which tools a caller sees, how risky a call is, and why.
//
// [Compile] turns configuration and the registered tools into an immutable [Snapshot], which implements
// [toolward.Snapshot]; [Live] holds the snapshot in force and swaps it atomically. Nothing is compiled, read or
// looked up by pattern on the path of a call.
//
// Two questions are answered in two places. Layers (layer.go) decide whether a caller sees a tool at all: each
// layer can only take tools away, so that adding one never allows more and their order only decides which of them
// an explanation names. Judging (judge.go) takes one call of a visible tool through the class table (table.go), the
// operator's changes to it (override.go), the findings of validation (findings.go, url.go) and the level of the
// session (verdict.go); commands are judged in exec.go.
package policy
