// Package command decides about commands: which modes are in force, which programs run without a question, what an
// approval of a command is bound to, and what its environment holds. It keeps the file exec-approvals.json.
//
// Package shell says what a command would start and do; this package says whether that may happen.
// [Evaluator.Evaluate] answers with an [Assessment]: every program resolved, every word as it would run, every effect
// with its verdict. What is judged, shown, bound to an approval and run is that one value. Nothing is started and
// nothing is written by it; of the files that a command names only metadata is read.
package command
