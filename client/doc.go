// Package client is for programs that ask people for approval, or show approvals and answer them. It speaks the gateway
// protocol (docs/protocol.md) with a gateway on this machine or another one.
//
// # Connecting
//
// [Dial] needs an address, what the gateway asks for (a token or a password), scopes, and for nearly everything an
// [Identity]: the key of a device. Keep it in a file of the program's own with [LoadIdentity]. Without one a program can
// ask, but its question is lost with its connection, and it can answer nothing.
//
// A program of the gateway's machine is paired without asking. Elsewhere Dial fails with [ErrPairing] until a person
// approves the device, or waits for that if [Options].Pairing is set.
//
// A [Client] keeps its connection: when it breaks, it connects again, waiting longer each time. Requests wait meanwhile, as
// long as their contexts let them. A refusal that repeating does not change ends the client; its requests say why.
//
// # Asking
//
// [Client.AskCommand] and [Client.AskCall] put a question and return once the gateway has it. [Asked.Wait] waits for the
// answer, over a new connection if need be, even to a gateway that was restarted meanwhile. Run what you asked about, exactly
// that and once, if [toolward.Decision.Allows] says so; no decision, and every error, is a no.
//
// # Answering
//
// What only people may do needs a device that a signed-in person approved (toolward devices approve) before it connects;
// until then it fails with [ErrPerson]. [Client.Watch] tells what happens, [Client.Pending] lists what waits, and
// [Client.Resolve] answers an approval as it was shown: if another question stands under its id by then, nothing is
// answered.
package client
