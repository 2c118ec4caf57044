// Package ticket gives guarded agents' shells the right to start one admitted command each, and starts it when toolward-run
// shows the ticket.
//
// A client that runs commands itself is told to run "toolward-run TICKET" in the place of a command. Whoever shows the ticket
// gets exactly the command that was admitted, once: the daemon starts it from the pass, and nothing of what the shell says
// chooses what runs. So a ticket is no secret worth stealing, and everything about it that is not as expected refuses.
package ticket
