package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
)

// The messages of the follower.
type (
	newsMsg      Event
	awayMsg      struct{ err error }
	signedOutMsg struct{ err error }
)

// Pauses between attempts to reach the gateway.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 4 * time.Second
)

// follow keeps following the gateway until ctx ends. While nobody is signed in it waits for again.
func follow(ctx context.Context, gateway Gateway, again <-chan struct{}, send func(tea.Msg)) {
	pause := firstPause
	for ctx.Err() == nil {
		err := gateway.Follow(ctx, func(e Event) {
			pause = firstPause
			send(newsMsg(e))
		})
		if ctx.Err() != nil {
			return
		}
		var later <-chan time.Time
		if errors.Is(err, ErrNotSignedIn) {
			send(signedOutMsg{err})
		} else {
			send(awayMsg{err})
			later = time.After(pause)
			pause = min(2*pause, lastPause)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-later:
		}
	}
}
