// Package builtin holds the tools that Toolward ships: read, write, edit, apply_patch, list, search, exec and
// process, on the gateway's own machine.
//
// [New] makes a [Toolbox]; [Toolbox.Tools] gives the tools to register and [Toolbox.Close] ends every command that
// is still running.
//
// Every tool works in two steps. Facts resolves the paths of a call to real ones, parses what is to be parsed and
// hands the result over in Facts.Prepared. Run uses exactly that: it resolves nothing again, parses nothing again,
// and opens files only through package place, which refuses what became a symbolic link or another kind of file in
// between. So a decision about a call is a decision about what will happen.
//
// Everything is bounded: what is read, kept, shown, walked, compared and started. See [Config].
package builtin
