// Package bridge guards agents that people already use: it speaks the hook contract of each client, turns what the
// client is about to do into a call for the gateway, and gives the answer in the client's own words.
//
// [NewHandler] serves the hooks of running clients on the daemon's local socket; the other end is package
// hookclient. [Install], [Uninstall] and [Doctor] put the hook into a client's settings, take it out, and prove that
// it blocks.
//
// A client is a row in clients.go, files with its contract (claudecode.go) and one with the table of its tools (claudetools.go).
//
// What a client runs is never translated with loss: what is decided and shown has every argument of the native call,
// and a call with an argument that the table does not know is an unknown tool, which asks.
package bridge
