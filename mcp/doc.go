// Package mcp is the adapter that MCP clients see: a Model Context Protocol server whose every tool call goes through
// a [toolward.Gateway].
//
// [NewServer] makes one server for all clients. [Server.Handler] serves streamable HTTP to clients with a bearer
// token. [Server.StdioHandler] and [Server.ServeConn] serve the stdio form: "toolward mcp" runs [Pipe], which joins
// its standard input and output to the daemon's local socket and knows nothing of the protocol.
//
// Rules of this adapter:
//
//   - Who calls is decided by the token or the socket alone ([Identity]). Nothing in a message can change it.
//   - A client is shown the tools that its caller may see, with their own schemas. A tool it may not see and a tool
//     that does not exist are refused alike.
//   - The gateway gets the arguments as the bytes that arrived. Nothing in between decodes, validates or re-encodes
//     them, so that duplicate keys and odd escapes are judged by one decoder.
//   - A refused call is a normal result with isError and the JSON text of a [toolward.Refusal]. The model can read
//     it; a protocol error it could not.
//   - While a call waits for a person the client is told with progress notifications, and with a link if it can
//     show one (URL elicitation). The link's acceptance is never an answer: an answer needs a person who has signed
//     in. A client that goes away, or cancels, withdraws its question.
//   - Protocol 2026-07-28 has no server requests. There a waiting call ends with "input_required" and a signed
//     requestState; the repeated call resumes by approval id. A requestState that is forged, stale, another
//     client's, or comes with another call, is refused.
//
// The protocol versions 2025-06-18, 2025-11-25 and 2026-07-28 are spoken.
//
// [Upstreams] is for the other side: it turns what foreign MCP servers list into tools of Toolward, only what a person
// has accepted and only as long as the server says the same.
package mcp
