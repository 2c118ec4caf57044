package desk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/fleet"
)

// log is a record that can be broken.
type log struct{ err error }

func (l *log) Query(context.Context, audit.Filter) ([]audit.Record, error) { return nil, l.err }
func (l *log) Verify(context.Context) (audit.Report, error)                { return audit.Report{}, l.err }
func (l *log) Checkpoint() error                                           { return l.err }
func (l *log) Tail() *audit.Tail                                           { return nil }

// Nobody but a person reads the record, and nothing of it is written to anybody else.
func TestRecords(t *testing.T) {
	w, l := newWorld(t), &log{}
	at, err := desk.New(desk.Options{Audit: w, Records: l, Source: struct{ audit.Source }{}})
	must(t, err)
	var out bytes.Buffer
	export := func(v desk.Visitor) error {
		return at.ExportRecords(t.Context(), v, func(_ context.Context, _ audit.Source, to io.Writer, _ int64) error {
			_, err := io.WriteString(to, "secret")
			return err
		}, func() io.Writer { return &out }, 0)
	}
	from := func(ctx context.Context, at *desk.Desk, v desk.Visitor) map[string]error {
		_, a := at.Anomalies(ctx, v, audit.Filter{})
		_, b := at.Sessions(ctx, v, 10)
		_, c := at.FollowRecords(v)
		_, _, _, d := at.SandboxHistory(ctx, v, &fleet.Info{})
		_, e := at.Level(ctx, v, conversation)
		return map[string]error{"anomalies": a, "sessions": b, "follow": c, "sandbox": d, "level": e}
	}
	read := func(v desk.Visitor) error { _, err := at.Records(t.Context(), v, audit.Filter{}); return err }
	verify := func(v desk.Visitor) error { _, _, err := at.VerifyRecords(t.Context(), v); return err }
	for who, v := range strangers() {
		if a, b, c := read(v), verify(v), export(v); desk.CodeOf(a) != desk.NotAllowed || desk.CodeOf(b) != desk.NotAllowed || desk.CodeOf(c) != desk.NotAllowed || out.Len() != 0 {
			t.Errorf("%s: %v, %v, %v, %q", who, a, b, c, out.String())
		}
	}
	full, err := desk.New(desk.Options{Audit: w, Records: l, Levels: w.sessions})
	must(t, err)
	for who, v := range strangers() {
		for what, err := range from(t.Context(), full, v) {
			if desk.CodeOf(err) != desk.NotAllowed {
				t.Errorf("%s, %s: %v", who, what, err)
			}
		}
	}
	for what, err := range from(t.Context(), full, w.person()) {
		if err != nil {
			t.Errorf("a person, %s: %v", what, err)
		}
	}
	for what, err := range from(t.Context(), w.desk, w.person()) { // which keeps no record
		if what != "level" && desk.CodeOf(err) != desk.NotKept {
			t.Errorf("%s without a record: %v", what, err)
		}
	}
	person := w.person()
	if a, b, c := read(person), verify(person), export(person); a != nil || b != nil || c != nil || out.String() != "secret" {
		t.Errorf("a person: %v, %v, %v, %q", a, b, c, out.String())
	}
	l.err = &audit.Break{Seq: 7}
	if _, broken, err := at.VerifyRecords(t.Context(), person); err != nil || broken == nil || broken.Seq != 7 {
		t.Errorf("broken: %v, %v", broken, err)
	}
	l.err = errors.New("no such type")
	if err := read(person); desk.CodeOf(err) != desk.Invalid {
		t.Errorf("a wrong filter: %v", err)
	}
	if err := verify(person); desk.CodeOf(err) != desk.Failed {
		t.Errorf("a disk that fails: %v", err)
	}
}
