package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// decide records an allowed call, and its outcome unless status is empty.
func decide(t testing.TB, log *audit.Log, d *toolward.DecisionRecord, status toolward.Status) toolward.RecordID {
	t.Helper()
	id, err := log.Decide(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	if status != "" {
		if err := log.Conclude(context.Background(), id, &toolward.OutcomeRecord{Status: status, ResultBytes: 3}); err != nil {
			t.Fatal(err)
		}
	}
	return id
}

func verify(t testing.TB, log *audit.Log) audit.Report {
	t.Helper()
	report, err := log.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestTwoRecordsForEachCall(t *testing.T) {
	log, db := openLog(t, audit.Options{})
	d := typical(toolward.Allow)
	id := decide(t, log, d, toolward.StatusOK)
	records, err := log.Query(t.Context(), audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 2 {
		t.Fatalf("%d records, want 2", len(records))
	}
	outcome, decision := records[0], records[1]
	if decision.Seq != int64(id) || outcome.Ref != int64(id) || outcome.Status != "ok" || decision.Verdict != "allow" {
		t.Errorf("records do not belong together: %+v", records)
	}
	if err := log.Conclude(t.Context(), id, &toolward.OutcomeRecord{Status: toolward.StatusOK}); err == nil {
		t.Error("a second outcome was accepted")
	}
	if err := log.Conclude(t.Context(), 999, &toolward.OutcomeRecord{Status: toolward.StatusOK}); err == nil {
		t.Error("an outcome without a decision was accepted")
	}
	if report := verify(t, log); report.Records != 2 {
		t.Errorf("verified %d records", report.Records)
	}
	var rows int
	if err := db.Reader().QueryRow(`SELECT count(*) FROM audit WHERE type = 'outcome'`).Scan(&rows); err != nil || rows != 1 {
		t.Error(rows, err)
	}
}

func TestConcurrentCallsMakeOneChain(t *testing.T) {
	log, _ := openLog(t, audit.Options{CheckpointEvery: 50})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			d := typical(toolward.Allow)
			d.Call.Session = toolward.SessionKey(fmt.Sprintf("agent:coder:mcp:%d", i))
			d.Facts.Mutates = i%2 == 0
			for range 10 {
				decide(t, log, d, toolward.StatusOK)
			}
		})
	}
	wg.Wait()
	report := verify(t, log)
	if report.Records < 640 || report.Checkpoints < 640/50-1 || report.Sealed == 0 {
		t.Errorf("report %+v", report)
	}
	found, err := log.Query(t.Context(), audit.Filter{Session: "agent:coder:mcp:7", Limit: 1000})
	if err != nil || len(found) != 20 {
		t.Errorf("%d records of one session, error %v; want 20", len(found), err)
	}
}

func TestQuery(t *testing.T) {
	log, _ := openLog(t, audit.Options{})
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 40 {
		d := typical(toolward.Allow)
		d.Time = base.Add(time.Duration(i) * time.Minute)
		d.Call.ID = fmt.Sprintf("call-%d", i)
		if i%10 == 3 {
			d.Tool, d.Verdict, d.Via = "exec", toolward.Deny, "denied"
			d.Cause = `it said "50%_off\now"`
		}
		decide(t, log, d, "")
	}
	for _, test := range []struct {
		name   string
		filter audit.Filter
		want   []string // call ids
	}{
		{"newest first", audit.Filter{Limit: 2}, []string{"call-39", "call-38"}},
		{"next page", audit.Filter{Limit: 2, Below: 39}, []string{"call-37", "call-36"}},
		{"since", audit.Filter{Since: base.Add(38 * time.Minute)}, []string{"call-39", "call-38"}},
		{"until", audit.Filter{Until: base.Add(2 * time.Minute)}, []string{"call-1", "call-0"}},
		{"between", audit.Filter{Since: base.Add(time.Minute), Until: base.Add(3 * time.Minute)}, []string{"call-2", "call-1"}},
		{"tool", audit.Filter{Tool: "exec", Limit: 1}, []string{"call-33"}},
		{"verdict", audit.Filter{Verdict: "deny", Limit: 1}, []string{"call-33"}},
		{"session", audit.Filter{Session: "agent:nobody:main"}, nil},
		{"agent", audit.Filter{Agent: "coder", Limit: 1}, []string{"call-39"}},
		{"text", audit.Filter{Text: "CALL-12"}, []string{"call-12"}},
		{"text with signs", audit.Filter{Text: `"50%_off\now"`, Limit: 1}, []string{"call-33"}},
		{"text is no pattern", audit.Filter{Text: "call_12"}, nil},
		{"type", audit.Filter{Type: audit.TypeOutcome}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := log.Query(t.Context(), test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range found {
				var body struct{ CallID string }
				if err := json.Unmarshal([]byte(r.JSON), &body); err != nil {
					t.Fatal(err)
				}
				got = append(got, body.CallID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, wrong := range []audit.Filter{{Verdict: "ask"}, {Verdict: "Allow"}, {Status: "fine"}, {Type: "call"}, {Limit: 100000}, {Limit: -1}} {
		if _, err := log.Query(t.Context(), wrong); err == nil {
			t.Errorf("%+v was not refused", wrong)
		}
	}
}

// TestQueryByTimeWithJumpingClock: the clock goes back an hour in the middle.
func TestQueryByTimeWithJumpingClock(t *testing.T) {
	log, _ := openLog(t, audit.Options{})
	base := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := 0
	since := base.Add(-30 * time.Minute)
	for i := range 600 {
		d := typical(toolward.Allow)
		d.Facts.Mutates = false
		d.Time = base.Add(time.Duration(i) * time.Second)
		if i > 300 {
			d.Time = d.Time.Add(-time.Hour)
		}
		if !d.Time.Before(since) {
			want++
		}
		decide(t, log, d, "")
	}
	found, err := log.Query(t.Context(), audit.Filter{Since: since, Limit: 1000})
	if err != nil || len(found) != want {
		t.Errorf("%d records, want %d; error %v", len(found), want, err)
	}
}

func TestTail(t *testing.T) {
	log, _ := openLog(t, audit.Options{})
	follower, slow := log.Tail(), log.Tail()
	for range 600 {
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
		for range 2 {
			<-follower.C
		}
	}
	n, last := 0, int64(0)
	for r := range slow.C {
		if r.Seq != last+1 {
			t.Fatalf("record %d follows %d", r.Seq, last)
		}
		last = r.Seq
		n++
	}
	if !errors.Is(slow.Err(), audit.ErrSlow) || n == 0 {
		t.Errorf("the slow reader got %d records and %v, want ErrSlow", n, slow.Err())
	}
	follower.Close()
	for range follower.C { // what was committed before is still to be had
	}
	if follower.Err() != nil {
		t.Errorf("closed follower: %v", follower.Err())
	}
}

func TestRetention(t *testing.T) {
	log, db := openLog(t, audit.Options{CheckpointEvery: 7})
	old := time.Now().Add(-100 * 24 * time.Hour)
	for i := range 30 {
		d := typical(toolward.Allow)
		d.Time = old.Add(time.Duration(i) * time.Second)
		id, err := log.Decide(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Conclude(t.Context(), id, &toolward.OutcomeRecord{Status: toolward.StatusOK, Time: d.Time}); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	}
	before := verify(t, log)
	n, err := log.Retain(t.Context(), 90*24*time.Hour)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	after := verify(t, log)
	if after.First != n+1 || after.Last <= before.Last || after.Records >= before.Records {
		t.Errorf("%d deleted; before %+v, after %+v", n, before, after)
	}
	found, err := log.Query(t.Context(), audit.Filter{Type: audit.TypeRetention})
	if err != nil || len(found) != 1 || !strings.Contains(found[0].JSON, fmt.Sprintf(`"to":%d`, n)) {
		t.Errorf("the deletion is not recorded: %+v, %v", found, err)
	}
	if again, err := log.Retain(t.Context(), 90*24*time.Hour); again != 0 || err != nil {
		t.Errorf("a second run deleted %d, error %v", again, err)
	}
	// Nobody else can move the beginning.
	mustWrite(t, db, `UPDATE audit_seals SET seq = seq + 1, hash = (SELECT hash FROM audit ORDER BY seq LIMIT 1) WHERE kind = 'base'`)
	mustWrite(t, db, `DELETE FROM audit WHERE seq = (SELECT min(seq) FROM audit)`)
	var broken *audit.Break
	if _, err := log.Verify(t.Context()); !errors.As(err, &broken) || broken.Kind != "signature" {
		t.Errorf("a moved beginning: %v", err)
	}
}

func TestRetentionKeepsOpenCalls(t *testing.T) {
	log, _ := openLog(t, audit.Options{})
	d := typical(toolward.Allow)
	d.Time = time.Now().Add(-48 * time.Hour)
	id := decide(t, log, d, "")
	decide(t, log, d, "")
	if n, err := log.Retain(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("%d records deleted although call %d is still running; error %v", n, id, err)
	}
}
