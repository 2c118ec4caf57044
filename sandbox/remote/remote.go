// Package remote gives the engines of a process that has another user: the gateway of a system install decides under a uid of its own,
// and what runs must have the person's. A [Client] in the gateway hands every call of the contract (package sandbox) to a [Server] in
// that process, which has real engines; neither adds a right or looks anything up.
//
// Each call is a connection of its own: a request with the descriptors that it speaks of, an answer, and the end. Whoever hangs up has
// given up, and the other side ends what it was doing. One more connection stands for the gateway itself: when it ends, so do the
// sandboxes, as if the engines were the gateway's own.
//
// Both sides ask the kernel whom they talk to before a byte counts. A program under the person's uid, an agent's for example, can
// neither call the server (it is not the gateway's user) nor stand in its place (it cannot make a socket where root has made one).
package remote

// Protocol is the version of what is said. Both sides are the same program, but an update may have replaced one that still runs.
const Protocol = 1
