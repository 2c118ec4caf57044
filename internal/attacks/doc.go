// Package attacks drives published attacks, testdata/vectors/attacks.json, through the real parts: a gateway with the
// compiled policy, approvals, record, levels and store on disk, the tools that Toolward ships in a tree of their own,
// and the registration of foreign MCP servers. Only tools that do not exist yet, and the servers themselves, are the
// tests' own. What nothing can answer yet is reported as skipped, with the reason, and never counts as held.
package attacks
