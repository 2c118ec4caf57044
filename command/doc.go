// Package command assesses a command: what it would start, read, write and send, and which entries, presets and built-in
// programs cover it. It states facts; the verdict is that of package modes.
//
// Package shell says what a command would start and do; this package finds the programs, and says of each effect what covers it.
// [Evaluator.Evaluate] answers with an [Assessment]: every program resolved, every word as it would run, every effect
// with what covers it. What is judged, shown, bound to an approval and run is that one value. Nothing is started and
// nothing is written by it; of the files that a command names only metadata is read.
package command
