package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// Anomaly is what a detector noticed, as the record has it.
type Anomaly struct {
	Seq      int64               `json:"seq"` // its position in the record
	At       time.Time           `json:"at"`
	Session  toolward.SessionKey `json:"session,omitempty"`
	Agent    string              `json:"agent,omitempty"`
	Tool     string              `json:"tool,omitempty"` // of the call that made it fire
	CallID   string              `json:"callId,omitempty"`
	Run      string              `json:"run,omitempty"`
	Detector string              `json:"detector"` // docs/levels.md lists them; auditGap: the record itself is not as it was left
	Count    int                 `json:"count,omitempty"`
	Action   string              `json:"action,omitempty"` // alert, ask, elevate, lockdown, block or abort
	Detail   string              `json:"detail,omitempty"` // of a loop: which
	Text     string              `json:"text"`             // in words
	Notified bool                `json:"notified"`         // false: the same was told less than five minutes before
}

// Anomalies are what detectors noticed, of the records that a filter matches, newest first.
func (d *Desk) Anomalies(ctx context.Context, v Visitor, filter audit.Filter) ([]Anomaly, error) {
	if err := d.may(v, SeeAnomalies, d.records != nil); err != nil {
		return nil, err
	}
	filter.Type = audit.TypeAnomaly
	records, err := d.records.Query(ctx, filter)
	if err != nil {
		return nil, &Error{Invalid, err}
	}
	list := make([]Anomaly, len(records))
	for i := range records {
		if list[i], err = newAnomaly(&records[i]); err != nil {
			return nil, &Error{Failed, err}
		}
	}
	return list, nil
}

func newAnomaly(r *audit.Record) (Anomaly, error) {
	var record struct {
		CallID string  `json:"callId"`
		Data   Anomaly `json:"data"`
	}
	if err := json.Unmarshal([]byte(r.JSON), &record); err != nil {
		return Anomaly{}, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	a := record.Data
	a.Seq, a.At, a.CallID = r.Seq, r.Time, record.CallID
	a.Session, a.Agent, a.Tool = toolward.SessionKey(r.Session), r.Agent, r.Tool
	return a, nil
}
