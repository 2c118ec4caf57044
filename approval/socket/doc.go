// Package socket is the local approval protocol: one JSON line in, one JSON line out, over a Unix socket that only
// programs of one user can reach. A program that shows questions listens ([Server]); whoever needs an answer connects
// ([Client]). Other products speak it, too; its address and its secret are kept in exec-approvals.json.
//
// Three frames go to the program that listens:
//
//   - request: asks about a command, with the secret in the open. It is there for programs that know nothing else.
//   - approval: asks about any call, authenticated.
//   - exec: runs a command there, authenticated.
//
// An authenticated frame carries the HMAC-SHA-256 of "nonce:ts:requestJson" under the secret. It counts for ten seconds
// around its time and once, so that whoever records one cannot repeat it.
//
// What a listening program answers is not a person's answer by itself: programs that run under one user can read that
// user's files, the secret among them, and stand in for each other. [Prompter] says what Toolward makes of it.
package socket

import (
	"errors"
	"time"
)

// Bounds of the protocol.
const (
	maxLine      = 256_000          // bytes of one line without its end
	maxPath      = 103              // bytes that every supported system can bind (macOS: 104 with its NUL)
	backlog      = 16               // connections served at once
	readPatience = 10 * time.Second // for the line of a frame
	window       = 10 * time.Second // between the time of a frame and ours, either way
	nonceMemory  = 20 * time.Second // both sides of the window: after that a frame is too old anyway
	maxNonces    = 100_000          // remembered at once; more frames are refused

	requestPatience = 15 * time.Second // of a client, for the answer to a request frame
	execPatience    = 20 * time.Second // of a client, for the result of a command without a time limit
	execMargin      = 5 * time.Second  // on top of a command's own time limit
)

// Errors that callers branch on.
var (
	// ErrNoAnswer means that the other end closed without an answer: it does not know the frame, or gave up.
	ErrNoAnswer = errors.New("the approval socket gave no answer")
	// ErrUnreachable means that nobody of ours listens.
	ErrUnreachable = errors.New("nobody listens at the approval socket")
)
