// Package policy judges how risky a call is, and why. Which tools a caller sees at all, package visible decides.
//
// [Compile] turns configuration and the registered tools into an immutable [Snapshot], which implements
// [toolward.Snapshot]; [Live] holds the snapshot in force and swaps it atomically. Nothing is compiled, read or
// looked up by pattern on the path of a call.
//
// Judging (judge.go) takes one call of a visible tool through the class table (table.go), the operator's changes to it
// (override.go), the findings of validation (findings.go, url.go) and the level of the session (verdict.go); commands
// are judged in command.go.
package policy
