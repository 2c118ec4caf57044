package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/toolward/toolward/audit"
)

// recordsParams are the parameters of audit.list and audit.tail.
type recordsParams struct {
	Since      json.RawMessage `json:"since"`
	Limit      int             `json:"limit"`
	Cursor     string          `json:"cursor"`
	SessionKey string          `json:"sessionKey"`
	Tool       string          `json:"tool"`
	Decision   string          `json:"decision"`
}

func recordsShape() shape {
	return object(
		may("since", either(whole(0), text(64))), may("limit", wholeUpTo(1, audit.MaxLimit)), may("cursor", text(32)),
		may("sessionKey", text(1024)), may("tool", text(128)), may("decision", oneOf("allow", "deny")),
	)
}

func (p *recordsParams) filter() (audit.Filter, *Error) {
	f := audit.Filter{Limit: p.Limit, Session: p.SessionKey, Tool: p.Tool, Verdict: p.Decision}
	if since := nonNull(p.Since); since != nil {
		text, isText := textOf(since)
		var err error
		if isText {
			f.Since, err = time.Parse(time.RFC3339, text)
		} else {
			var ms int64
			err = json.Unmarshal(since, &ms)
			f.Since = time.UnixMilli(ms)
		}
		if err != nil {
			return f, invalid("since: expected milliseconds, or a time such as 2026-11-21T14:00:00Z")
		}
	}
	return f, nil
}

// listRecords is audit.list: records, newest first; cursor is where the next page begins.
func (r *call) listRecords(ctx context.Context, p *recordsParams) (any, *Error) {
	f, wrong := p.filter()
	if wrong != nil {
		return nil, wrong
	}
	if p.Cursor != "" {
		below, err := strconv.ParseInt(p.Cursor, 10, 64)
		if err != nil || below < 1 {
			return nil, invalid("cursor: not one that audit.list gave")
		}
		f.Below = below
	}
	records, failed := r.query(ctx, f)
	if failed != nil {
		return nil, failed
	}
	out := map[string]any{"records": records}
	if limit := f.Limit; len(records) > 0 && (limit == 0 && len(records) == audit.DefaultLimit || len(records) == limit) {
		out["cursor"] = strconv.FormatInt(records[len(records)-1].Seq, 10)
	}
	return out, nil
}

// tailRecords is audit.tail: what has been recorded since the cursor, oldest first; cursor is where to go on.
func (r *call) tailRecords(ctx context.Context, p *recordsParams) (any, *Error) {
	f, wrong := p.filter()
	if wrong != nil {
		return nil, wrong
	}
	var after int64
	if p.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(p.Cursor, 10, 64); err != nil || after < 0 {
			return nil, invalid("cursor: not one that audit.tail gave")
		}
	}
	records, failed := r.query(ctx, f)
	if failed != nil {
		return nil, failed
	}
	fresh, last := []audit.Record{}, after
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Seq > after {
			fresh, last = append(fresh, records[i]), records[i].Seq
		}
	}
	return map[string]any{
		"records": fresh, "cursor": strconv.FormatInt(last, 10),
		"truncated": after > 0 && len(records) == cmp.Or(f.Limit, audit.DefaultLimit) && records[len(records)-1].Seq > after+1,
	}, nil
}

func (r *call) query(ctx context.Context, f audit.Filter) ([]audit.Record, *Error) {
	records, err := r.server.desk.Records(ctx, r.visitor(), f)
	if err != nil {
		return nil, invalid("%s", err)
	}
	return records, nil
}
