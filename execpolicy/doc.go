// Package execpolicy decides about commands: which modes are in force, which programs run without a question, what an
// approval of a command is bound to, and what its environment holds. It keeps the file exec-approvals.json.
//
// Package shell says what a command would start and do; this package says whether that may happen.
package execpolicy
