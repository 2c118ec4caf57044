package approval

import (
	"container/heap"
	"context"
	"time"

	"github.com/toolward/toolward"
)

// run is the one goroutine: it ends what is due and writes what can wait.
func (m *Manager) run() {
	defer close(m.stopped)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	prune, tidy := time.Now().Add(pruneEvery), time.Now()
	for {
		now := time.Now()
		m.mu.Lock()
		m.sweep(now)
		wait := pruneEvery
		if len(m.schedule) > 0 {
			wait = m.schedule[0].due.Sub(now)
		}
		expiries := m.unwritten
		m.unwritten = nil
		m.mu.Unlock()

		retry := m.flush(expiries)
		if retry {
			wait = min(wait, flushEvery)
		}
		if !now.Before(prune) {
			prune = now.Add(pruneEvery)
			m.prune(now)
		}
		if now.Sub(tidy) >= tidyEvery {
			tidy = now
			m.book.dropExpired(now.UnixMilli())
		}
		timer.Reset(max(min(wait, prune.Sub(now)), time.Millisecond))
		select {
		case <-timer.C:
		case <-m.woken:
		case <-m.stop:
			m.mu.Lock()
			expiries := m.unwritten
			m.unwritten = nil
			m.mu.Unlock()
			m.flush(expiries)
			m.writeUses()
			return
		}
	}
}

// flush writes ends without a decision, and counted uses every few seconds. It reports whether something is left
// for later.
func (m *Manager) flush(expiries []Expiry) (left bool) {
	if len(expiries) > 0 {
		ctx, cancel := storeContext(context.Background())
		err := m.store.ExpireApprovals(ctx, expiries)
		cancel()
		if err != nil {
			// Nothing depends on these rows: past its deadline an approval is ended, whatever the row says.
			m.log.Warn("ends of approvals could not be written, trying again", "count", len(expiries), "err", err)
			m.mu.Lock()
			m.unwritten = append(expiries, m.unwritten...)
			m.mu.Unlock()
			left = true
		}
	}
	if m.book.usesDue(time.Now()) {
		m.writeUses()
	}
	return left || m.book.hasUses()
}

func (m *Manager) writeUses() {
	uses := m.book.takeUses()
	if len(uses) == 0 {
		return
	}
	ctx, cancel := storeContext(context.Background())
	defer cancel()
	if err := m.store.CountGrantUses(ctx, uses); err != nil {
		m.log.Warn("uses of grants could not be written, trying again", "err", err)
		m.book.giveBack(uses)
	}
}

func (m *Manager) prune(now time.Time) {
	m.book.dropExpired(now.UnixMilli())
	ctx, cancel := storeContext(context.Background())
	defer cancel()
	if err := m.store.PruneApprovals(ctx, now.Add(-keepRecords).UnixMilli()); err != nil {
		m.log.Warn("old approvals could not be removed", "err", err)
	}
}

// sweep ends everything that is due. The caller holds the lock.
func (m *Manager) sweep(now time.Time) {
	for len(m.schedule) > 0 && !m.schedule[0].due.After(now) {
		e := m.schedule[0]
		switch {
		case e.phase >= resolved:
			heap.Pop(&m.schedule)
			if m.entries[e.record.ID] == e { // the id may belong to a newer approval by now
				delete(m.entries, e.record.ID)
			}
			m.forgetUntold(e)
		case e.claimed || e.phase == registering:
			// Somebody was in time and is being written down; whoever writes sets the next due time.
			heap.Pop(&m.schedule)
		case e.orphan && now.Before(e.end):
			m.end(e, ByRequesterGone, now)
		default:
			m.end(e, "", now)
			m.people.timedOut(e.session, now)
		}
	}
}

// end resolves a pending entry without a decision. The caller holds the lock.
func (m *Manager) end(e *entry, by string, now time.Time) {
	m.settle(e, Resolution{Decision: toolward.NoDecision, By: by, AtMs: now.UnixMilli()}, kept{}, now)
	m.unwritten = append(m.unwritten, Expiry{e.record.Key(), by, now.UnixMilli()})
	m.wake()
}

// settle makes an entry resolved, wakes everybody who waits, and returns the record as people are shown it. The caller holds
// the lock.
func (m *Manager) settle(e *entry, end Resolution, k kept, now time.Time) Record {
	m.uncount(e)
	e.phase, e.claimed = resolved, false
	e.record.State, e.record.Decision = StateResolved, end.Decision
	e.record.ResolvedBy, e.record.Reason, e.record.ResolvedMs, e.record.Grant = end.By, end.Reason, end.AtMs, k.id()
	e.record.Saved = k.entries
	if e.cancel != nil {
		e.cancel()
	}
	close(e.done)
	m.schedule.set(e, now.Add(grace))
	m.keepUntold(e, now)
	r := e.shown()
	m.publish(Event{Type: EventResolved, Approval: r})
	return r
}

// shown is the record with what people are shown of it, if that is in memory.
func (e *entry) shown() Record {
	r := e.record
	if e.detail != nil {
		r.Request, _ = decodeDetails(e.detail) // our own encoding; without it the event still says what happened
	}
	return r
}

func (m *Manager) publish(e Event) {
	if m.observe != nil {
		m.observe(e)
	}
	m.subs.publish(e)
}
