// Package door has what everything behind the gateway's doors needs: under which addresses people reach it, which process
// is at the other end of the socket, how a request is refused, and how events are streamed.
package door
