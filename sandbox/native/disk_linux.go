package native

import "github.com/toolward/toolward/sandbox"

// watchDisk ends the sandbox when it has written more than it may.
func (b *box) watchDisk(spec *sandbox.Spec) {
	w := b.engine.disk.Of(spec)
	if w == nil {
		return
	}
	b.engine.live.Go(func() {
		w.Measure()
		b.noteDisk()
		if reason := w.Run(b.done); reason != "" {
			b.breached(reason)
		}
	})
}

// breached stops everything where it is, tells, and ends the sandbox.
func (b *box) breached(reason string) {
	if b.group != nil {
		b.group.freeze()
	}
	b.mu.Lock()
	b.reason = reason
	b.mu.Unlock()
	if b.client != nil {
		b.client.End(reason)
	}
	b.engine.log.Warn("a sandbox was ended", "name", b.state.Name, "reason", reason)
	if b.group != nil {
		b.group.kill()
		b.group.thaw()
	}
	_ = b.end() // the next start removes what could not be removed
}
