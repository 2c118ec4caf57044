package tui

import "testing"

// TestBareAnswer: an answer need not repeat what the call is about, and may come before or after the news of it.
func TestBareAnswer(t *testing.T) {
	at(t, func(t *testing.T) {
		d := newDesk(t, alike("one", "two", "three")...)
		d.bare = true
		d.press("end")
		d.reads()
		d.press("a", "space")
		d.sees("Allowed once by owner (terminal): exec: make", "Queue (2)")
		d.reads()
		d.press("s")
		d.reads()
		d.press("enter")
		d.sees("2 identical calls: Denied by owner (terminal): exec: make", "Nothing waits.")
		d.answered("one allow-once 0", "two deny 0", "three deny 0")
	})
}
