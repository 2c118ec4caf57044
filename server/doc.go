// Package server is where people and local programs reach the gateway.
//
// It listens at two doors. The TCP door (127.0.0.1:7411) serves the web console to signed-in people, the MCP
// endpoint to agents with tokens, and /healthz. The socket door (<home>/toolward.sock) serves the command line,
// the hook program and the stdio MCP client.
//
// A door says where somebody stands, never who they are. Whoever reaches the socket is a requester: a guarded agent
// usually runs under the same user id as its user, so it can reach the socket too. Answering, granting, reading the
// record and changing anything needs a person, and a person is somebody who gave the passphrase: in this browser
// (cookie), or in this terminal (package identity knows which process belongs to it).
//
// What the doors check, in order, is in guard.go; what stands where, in routes.go. Who somebody is, and what they may,
// is the business of the rooms behind the doors: console, api and protocol.
package server
