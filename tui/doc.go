// Package tui lets people answer in a terminal.
//
// [Run] is the terminal console, "toolward tui": a screen with what waits, one call of it in front, and pages of
// decisions, sessions, grants and sandboxes. It reaches the running gateway through a [Gateway]. Its rules:
//
//   - The focus is on Deny whenever a call comes in front, and Enter never allows.
//   - An answer needs the stamp that the gateway gave for this showing, and half a second without a key that would have
//     answered.
//   - A call can be allowed once its last row has been on the screen.
//   - One answer for identical calls is for those that were shown together, each with the stamp of its own showing.
//   - What is typed for one call never reaches another: a reason that is being typed stays open until it is left.
//   - Everything a caller wrote is made visible and stands behind a bar, or at the end of a row.
//
// A [Terminal] is the terminal that "toolward up" runs in. [Terminal.SignIn] asks for the passphrase, and
// [Terminal.Attend] then prints every waiting call and takes answers, one line at a time:
//
//	a         allow this call once
//	A1, A2 …  allow it and save the grant that is printed beside the number
//	d         deny it; what follows on the line is the reason for the agent
//	m         print all of a long call
//
// The rules of the dialogue, which the code below keeps:
//
//   - Nothing is answered by an empty line, by anything typed before the call was printed, or within half a second
//     after it.
//   - Answers are for the call that was printed last. When it changes, what was typed so far is thrown away.
//   - Everything a caller wrote is made visible and stands behind a bar at the left, so that no text can pass for a
//     line of the dialogue.
//   - A call of which not everything was printed can be denied, not allowed.
package tui
