// Package toolward decides whether an agent's tool call may run, and runs it.
//
// Three sentences decide most questions:
//
//   - Nothing runs without a [Pass]. A Pass is single-use permission to run exactly one call, and only
//     [Gateway.Admit] makes one.
//   - Every doubt is a [Deny]. Zero values refuse, errors refuse, time-outs refuse, a missing part refuses.
//   - What was approved is what runs. Arguments are decoded once, re-encoded canonically, and from then on
//     decided, shown, bound, recorded and executed in that one form ([Params]).
//
// The package holds the subject only: the words (call, caller, tool, verdict, level, finding, pass) and the order
// of steps. How arguments are validated and classified, who is asked, where records are kept and what a session
// has been exposed to is behind the four interfaces [Policy], [Approver], [Auditor] and [Sessions], which the
// packages of the same names implement.
//
// Package gateway opens a Gateway with all of them; examples/embed does so in a program of its own.
package toolward
