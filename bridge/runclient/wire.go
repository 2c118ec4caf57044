package runclient

import "encoding/binary"

// Path is where the daemon serves toolward-run on its local socket.
const Path = "/v1/run"

// What toolward-run tells in headers. The body of its request is its environment: NAME=value, each ended by a NUL.
const (
	HeaderTicket    = "Toolward-Ticket"
	HeaderDirectory = "Toolward-Directory" // %XX for everything odd
	HeaderStreams   = "Toolward-Streams"   // of the letters of Stream…
	HeaderTerminal  = "Toolward-Terminal"  // columns "x" rows; only with a terminal
)

// The letters of HeaderStreams.
const (
	StreamInput  = 'i' // there may be something to read
	StreamMerged = 'm' // both outputs go to the same place
)

// What the daemon says, each a [Frame], in this order.
const (
	SaysStreams byte = 'd' // send the ends of the streams
	SaysNote    byte = 'n' // a text for standard error, behind what the command has written there
	SaysExit    byte = 'e' // how it ended: see Exit
	SaysRefused byte = 'x' // nothing ran: why
)

// What toolward-run says once its command runs: this letter and four bytes.
const (
	TellsSignal byte = 's' // number of the signal
	TellsSize   byte = 'w' // columns and rows, two bytes each
)

// ToldSize is the size in bytes of what toolward-run says.
const ToldSize = 5

// MaxFrame is the largest payload of a frame, in bytes.
const MaxFrame = 64 << 10

// ExitRefused is the exit status of a command that did not run: "cannot be executed", as in a shell.
const ExitRefused = 126

// headSize is that of a frame's head: what it is, and how long.
const headSize = 5

// AppendFrame appends a frame.
func AppendFrame(b []byte, says byte, payload []byte) []byte {
	b = append(b, says)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// Exit is how a command ended.
type Exit struct {
	Code   byte
	Signal byte   // 0: it ended itself
	Heard  byte   // how many signals that end programs it got, of those that toolward-run has told of
	Dir    string // where the client's shell is to be then; "" for where it is
}

// Append appends the payload of SaysExit.
func (e Exit) Append(b []byte) []byte { return append(append(b, e.Code, e.Signal, e.Heard), e.Dir...) }

// parseExit reads what Append writes.
func parseExit(b []byte) (e Exit, ok bool) {
	if len(b) < 3 || b[1] > 64 {
		return e, false
	}
	return Exit{Code: b[0], Signal: b[1], Heard: b[2], Dir: string(b[3:])}, true
}

// told is what toolward-run says.
func told(says byte, value uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{says}, value)
}

// ParseTold reads what toolward-run says.
func ParseTold(b [ToldSize]byte) (says byte, value uint32) {
	return b[0], binary.BigEndian.Uint32(b[1:])
}
