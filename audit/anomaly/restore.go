package anomaly

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// Bounds of what is read back after a restart.
const (
	leastPast  = time.Hour // at least so far back, for what has no window: bursts, loops, what was read
	maxRestore = 20_000    // records
)

// Restore tells the monitor the latest past of all sessions again, from the record, as if it had seen it; nothing
// follows from it. It goes back as far as the longest window, but no further than the newest 20,000 records.
//
// The record keeps no contents. So the lengths of arguments, the text of refused commands and the words of owners
// are not known again, and how the record writes a path with a secret in it is another path.
func (m *Monitor) Restore(ctx context.Context, source audit.Source) (records int, err error) {
	now := time.Now()
	last, err := source.Last(ctx)
	if err != nil {
		return 0, fmt.Errorf("restore what was watched: %w", err)
	}
	from, err := source.Before(ctx, now.Add(-m.past()))
	if err != nil {
		return 0, fmt.Errorf("restore what was watched: %w", err)
	}
	from = max(from, last.Seq-maxRestore) + 1
	p := playback{monitor: m, open: map[int64]*toolward.Request{}}
	var strange error // the first record that could not be read: what came after it counts all the same
	err = source.Scan(ctx, from, func(r *audit.Record) error {
		records++
		strange = cmp.Or(strange, p.play(r))
		return nil
	})
	if err = cmp.Or(err, strange); err != nil {
		return records, fmt.Errorf("restore what was watched: %w", err)
	}
	return records, nil
}

// past is how far back a restart has to look.
func (m *Monitor) past() time.Duration {
	longest := leastPast
	for _, r := range m.settings.Load().rules {
		longest = max(longest, r.window)
	}
	return longest
}

// playback plays records to a monitor.
type playback struct {
	monitor *Monitor
	open    map[int64]*toolward.Request // allowed, without an outcome yet
}

func (p *playback) play(r *audit.Record) error {
	switch r.Type {
	case audit.TypeDecision:
		return p.decision(r)
	case audit.TypeOutcome:
		return p.outcome(r)
	case audit.TypeAnomaly:
		return p.anomaly(r)
	case audit.TypeLevel:
		return p.level(r)
	}
	return nil
}

func (p *playback) decision(r *audit.Record) error {
	key := toolward.SessionKey(r.Session)
	if key.Agent() == "" || key.Agent() != r.Agent {
		return nil // a session that was not its caller's: it was not counted then
	}
	past, err := audit.ReadDecision(r)
	if err != nil {
		return err
	}
	request := past.Request
	request.Digest = past.Digest
	if wasWatched(past) {
		first := *request
		if past.Original != "" {
			first.Digest = past.Original
		}
		p.monitor.Before(r.Time, &first)
	}
	switch {
	case past.Verdict == toolward.Allow:
		p.open[r.Seq] = request
	case past.Code == toolward.CodeInvalidArgs:
		p.monitor.Invalid(r.Time, request)
	case past.Code != toolward.CodeAuditUnavailable && past.Code != toolward.CodeNoSandbox && past.Code != toolward.CodeNotKept:
		p.monitor.Denied(r.Time, request, past.Code)
	}
	return nil
}

// wasWatched reports whether the call came as far as the detectors: arguments decoded and facts found.
func wasWatched(p *audit.Past) bool {
	return p.Digest != "" && p.Code != toolward.CodeInvalidArgs && (p.Code != toolward.CodeValidation || p.Judged != nil)
}

func (p *playback) outcome(r *audit.Record) error {
	request := p.open[r.Ref]
	if request == nil {
		return nil
	}
	delete(p.open, r.Ref)
	var o struct {
		Error        string `json:"error"`
		ResultDigest string `json:"resultDigest"`
	}
	if err := json.Unmarshal([]byte(r.JSON), &o); err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	p.monitor.ended(r.Time, request, toolward.Status(r.Status), Outcome{Error: o.Error, Digest: o.ResultDigest})
	return nil
}

// anomaly brings back that a run was ended.
func (p *playback) anomaly(r *audit.Record) error {
	var a struct {
		Data struct {
			Action string `json:"action"`
			Run    string `json:"run"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(r.JSON), &a); err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if a.Data.Action == Abort.String() && r.Session != "" {
		p.monitor.end(r.Time, &toolward.Request{Call: toolward.Call{Session: toolward.SessionKey(r.Session), Run: a.Data.Run}})
	}
	return nil
}

// level brings back that a person has said that it is all right.
func (p *playback) level(r *audit.Record) error {
	var l struct {
		Data struct {
			Event string `json:"event"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(r.JSON), &l); err != nil {
		return fmt.Errorf("record %d: %w", r.Seq, err)
	}
	if l.Data.Event == "cleared" {
		p.monitor.Clear(toolward.SessionKey(r.Session))
	}
	return nil
}

// end ends a run.
func (m *Monitor) end(at time.Time, r *toolward.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session(r.Call.Session, at).endIf(true, m.runOf(r))
}
