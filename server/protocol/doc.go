// Package protocol is the gateway protocol, versions 3 and 4: JSON frames over a WebSocket, between the gateway and the
// programs of its operators. docs/protocol.md is its reference; the tables there are made from the tables here.
//
// A connection begins with a challenge. Its first frame must be "connect", with a credential, usually with the proof of
// a device's key, and with the scopes that it wants; without a scope it may do next to nothing. What is checked, in
// which order, is in handshake.go. After that it sends requests, answered in any order, and gets the events of its
// scopes.
//
// A scope says what a connection wants to do. It does not make a person of it: the gateway's shared secret lies where
// an agent of the same user could read it. What only people may do (seeing and answering approvals, pairing devices,
// reading the record, changing which commands run) needs a device that a signed-in person paired for that scope; see
// [github.com/toolward/toolward/identity.Pairings].
//
// Nothing here waits for a slow reader. Each connection has a queue that counts bytes, and one writer; whoever
// broadcasts only ever appends. See conn.go and queue.go.
package protocol
