package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/toolward/toolward"
)

// outcome encodes an outcome record into e. The decision's own words are
// repeated, so that each record can be read and found by itself.
func (c *cleaner) outcome(e *entry, decision int64, of *openCall, o *toolward.OutcomeRecord) {
	b := append(e.buf[:0], `{"agentId":`...)
	b = appendText(b, of.agent)
	b = textField(b, "callId", of.call)
	b = intField(b, "decision", decision)
	b = intField(b, "durationMs", o.Duration.Milliseconds())
	b = textField(b, "error", c.text(o.Error, errorLimit))
	if o.ExitCode != nil {
		b = appendInt(field(b, "exitCode"), *o.ExitCode)
	}
	b = list(b, "external", len(bounded(o.External)), func(b []byte, i int) []byte {
		return appendText(b, c.text(o.External[i], detailLimit))
	})
	e.prevAt = len(b)
	b = intField(b, "resultBytes", int64(o.ResultBytes))
	b = textField(b, "resultDigest", o.ResultDigest)
	b = countField(b, "sentBytes", o.SentBytes)
	e.seqAt = len(b)
	b = textField(b, "sessionKey", of.session)
	b = textField(b, "status", string(o.Status))
	b = textField(b, "tool", of.tool)
	b = timeField(b, o.Time)
	e.buf = append(b, `,"type":"outcome","v":1}`...)
	e.record = Record{
		Time: o.Time, Type: TypeOutcome, Ref: decision, Session: of.session, Agent: of.agent,
		Tool: of.tool, Status: string(o.Status),
	}
}

// Event is a record that is not about one call's decision or outcome.
type Event struct {
	Type    Type
	Time    time.Time // zero: now
	Session toolward.SessionKey
	Agent   string
	Tool    string
	CallID  string
	// Data holds what happened. Values are string, bool, int, int64,
	// []string, or another map[string]any of those. Strings lose their secrets
	// and are cut at 1 KiB.
	Data map[string]any
	// Durable waits for the disk before the record counts as written.
	Durable bool
}

// Append records an event and returns its position in the chain.
func (l *Log) Append(ctx context.Context, event Event) (int64, error) {
	switch event.Type {
	case TypeDecision, TypeOutcome, TypeCheckpoint, TypeRetention, "":
		// These carry promises that only the log itself can keep.
		return 0, fmt.Errorf("append an audit event: type %q is not for callers", event.Type)
	}
	e := l.entry()
	e.durable = event.Durable || l.always
	if err := l.clean.event(e, &event); err != nil {
		return 0, fmt.Errorf("append an audit event of type %s: %w", event.Type, err)
	}
	return l.submit(ctx, e)
}

func (c *cleaner) event(e *entry, v *Event) (err error) {
	at := v.Time
	if at.IsZero() {
		at = time.Now()
	}
	tool, agent, session := c.name(v.Tool), c.key(v.Agent), c.key(string(v.Session))
	b := append(e.buf[:0], `{"agentId":`...)
	b = appendText(b, agent)
	b = textField(b, "callId", c.name(v.CallID))
	if len(v.Data) > 0 {
		if b, err = c.data(field(b, "data"), v.Data, 0); err != nil {
			return err
		}
	}
	e.prevAt, e.seqAt = len(b), len(b)
	b = textField(b, "sessionKey", session)
	b = textField(b, "tool", tool)
	b = timeField(b, at)
	b = textField(b, "type", string(v.Type))
	e.buf = append(b, `,"v":1}`...)
	e.record = Record{Time: at, Type: v.Type, Session: session, Agent: agent, Tool: tool}
	return nil
}

// data appends a map of plain values in the order of its keys.
func (c *cleaner) data(b []byte, m map[string]any, depth int) (_ []byte, err error) {
	if depth > 4 {
		return nil, fmt.Errorf("data is nested too deeply")
	}
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, key), ':')
		switch value := m[key].(type) {
		case string:
			b = appendText(b, c.text(value, errorLimit))
		case bool:
			b = strconv.AppendBool(b, value)
		case int:
			b = appendInt(b, value)
		case int64:
			b = strconv.AppendInt(b, value, 10)
		case []string:
			b = append(b, '[')
			for j, s := range value[:min(len(value), listLimit)] {
				if j > 0 {
					b = append(b, ',')
				}
				b = appendText(b, c.text(s, errorLimit))
			}
			b = append(b, ']')
		case map[string]any:
			if b, err = c.data(b, value, depth+1); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("data field %q has a value of type %T", key, value)
		}
	}
	return append(b, '}'), nil
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
