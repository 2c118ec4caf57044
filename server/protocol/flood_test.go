package protocol

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward/identity"
)

// Any number of connections that never say who they are keeps nobody out who does, and none that was let in.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	bubble(t, byToken, func(t *testing.T, w *world) {
		known := w.connect(nil, identity.ScopeRead)
		for range maxHandshakes + 20 {
			w.dial(visit{})
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if _, f := w.tryConnect(visit{}, nil, identity.ScopeRead); !f.OK {
			t.Errorf("who comes behind them: %+v", f.Error)
		}
		if f := known.request("health", nil); !f.OK {
			t.Errorf("who was there before: %+v", f.Error)
		}
		w.mu.Lock()
		greeted := w.greeted
		w.mu.Unlock()
		if greeted > maxHandshakes {
			t.Errorf("%d wait for a first word", greeted)
		}
		time.Sleep(handshakeTime + time.Second)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.greeted != 0 || len(w.conns) != 2 {
			t.Errorf("in the end %d wait, of %d connections", w.greeted, len(w.conns))
		}
	})
}
