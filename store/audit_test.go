package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
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

// TestVerifyFindsTheFirstBreak changes a log as somebody with access to the
// database could.
func TestVerifyFindsTheFirstBreak(t *testing.T) {
	for _, test := range []struct {
		name   string
		change string
		kind   string
		seq    int64
	}{
		{"untouched", ``, "", 0},
		{"text changed", `UPDATE audit SET record = replace(record, '"verdict":"allow"', '"verdict":"deny"') WHERE seq = 5`, "changed", 5},
		{"text and column changed", `UPDATE audit SET record = replace(record, '"tool":"write"', '"tool":"reads"'), tool = 'reads' WHERE seq = 5`, "changed", 5},
		{"column changed", `UPDATE audit SET session = 'agent:other:main' WHERE seq = 5`, "changed", 5},
		{"time changed", `UPDATE audit SET ts = ts - 1000 WHERE seq = 5`, "changed", 5},
		{"hash changed", `UPDATE audit SET hash = zeroblob(32) WHERE seq = 5`, "changed", 5},
		{"not JSON", `UPDATE audit SET record = 'x' WHERE seq = 5`, "changed", 5},
		{"removed", `DELETE FROM audit WHERE seq = 5`, "removed", 5},
		{"beginning removed", `DELETE FROM audit WHERE seq < 5`, "removed", 1},
		{"end cut off", `DELETE FROM audit WHERE seq > 15`, "truncated", 16},
		{"all removed", `DELETE FROM audit`, "truncated", 1},
		{"seal removed", `DELETE FROM audit_seals`, "truncated", 21},
		{"end and seal removed", `DELETE FROM audit WHERE seq > 15; DELETE FROM audit_seals`, "truncated", 16},
		{"seal lowered", `DELETE FROM audit WHERE seq > 15; UPDATE audit_seals SET seq = 15`, "signature", 15},
		{"swapped", `UPDATE audit SET seq = 100 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 6; UPDATE audit SET seq = 6 WHERE seq = 100`, "reordered", 5},
		{"renumbered", `DELETE FROM audit WHERE seq = 5; UPDATE audit SET seq = seq - 1 WHERE seq > 5`, "reordered", 5},
		{"added", `INSERT INTO audit SELECT 21, ts, type, ref, session, agent, tool, verdict, status, record, hash FROM audit WHERE seq = 20`, "reordered", 21},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, db := openLog(t, audit.Options{CheckpointEvery: 1000})
			for range 10 {
				decide(t, log, typical(toolward.Allow), toolward.StatusOK)
			}
			log.Close()
			if test.change != "" {
				mustWrite(t, db, test.change)
			}
			_, err := log.Verify(t.Context())
			var broken *audit.Break
			if !errors.As(err, &broken) {
				broken = &audit.Break{}
			}
			if broken.Kind != test.kind || broken.Seq != test.seq {
				t.Errorf("got %v, want %q at %d", err, test.kind, test.seq)
			}
		})
	}
}

// TestAForgerWithoutTheKeyIsFound computes the whole chain anew after a
// change, which hashes alone cannot show.
func TestAForgerWithoutTheKeyIsFound(t *testing.T) {
	log, db := openLog(t, audit.Options{CheckpointEvery: 8})
	for range 10 {
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	}
	log.Close()
	rewrite(t, db, func(seq int64, record string) string {
		if seq == 3 {
			return strings.Replace(record, `"tool":"write"`, `"tool":"guess"`, 1)
		}
		return record
	})
	mustWrite(t, db, `UPDATE audit SET tool = 'guess' WHERE seq = 3`)
	_, err := log.Verify(t.Context())
	var broken *audit.Break
	if !errors.As(err, &broken) || broken.Kind != "signature" {
		t.Errorf("got %v, want a signature that does not fit", err)
	}
}

// rewrite changes records and computes all hashes again.
func rewrite(t *testing.T, db *DB, change func(int64, string) string) {
	t.Helper()
	type row struct {
		seq    int64
		record string
	}
	var list []row
	rows, err := db.Reader().Query(`SELECT seq, record FROM audit ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.seq, &r.record); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	prev := strings.Repeat("0", 64)
	err = db.Write(t.Context(), true, func(tx *sql.Tx) error {
		for _, r := range list {
			text := change(r.seq, r.record)
			at := strings.Index(text, `,"prev":"`) + len(`,"prev":"`)
			text = text[:at] + prev + text[at+64:]
			hash := sha(prev + text)
			prev = fmt.Sprintf("%x", hash)
			if _, err := tx.Exec(`UPDATE audit SET record = ?, hash = ? WHERE seq = ?`, text, hash, r.seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestACrashLeavesLostCalls(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	db, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := startLog(t, db, audit.Options{})
	decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	running := decide(t, log, typical(toolward.Allow), "")
	denied := decide(t, log, typical(toolward.Deny), "")
	decide(t, log, typical(toolward.Allow), toolward.StatusError)
	log.Close() // its calls are still running: as after a crash

	again := startLog(t, db, audit.Options{})
	defer db.Close()
	defer again.Close()
	lost, err := again.Query(t.Context(), audit.Filter{Status: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) != 1 || lost[0].Ref != int64(running) || lost[0].Tool != "write" || lost[0].Session == "" {
		t.Errorf("lost: %+v, want the outcome of %d only, not of the refusal %d", lost, running, denied)
	}
	if !strings.Contains(lost[0].JSON, `"callId":"toolu_01AbCdEf"`) {
		t.Errorf("the lost outcome does not name the call: %s", lost[0].JSON)
	}
	verify(t, again)
	again.Close()
	third := startLog(t, db, audit.Options{})
	defer third.Close()
	if lost, _ = third.Query(t.Context(), audit.Filter{Status: "lost"}); len(lost) != 1 {
		t.Errorf("%d lost outcomes after another start, want still one", len(lost))
	}
}

func TestAStartNoticesWhatWasDoneToTheLog(t *testing.T) {
	for _, test := range []struct{ name, change, want string }{
		{"nothing", ``, ""},
		{"cut off", `DELETE FROM audit WHERE seq > 4`, "ends at record 4"},
		{"emptied", `DELETE FROM audit`, "ends at record 0"},
		{"seal removed", `DELETE FROM audit_seals`, "seal of the log's end is missing"},
		{"last record changed", `UPDATE audit SET hash = zeroblob(32) WHERE seq = 6`, "not the one that was sealed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, db := openLog(t, audit.Options{})
			for range 3 {
				decide(t, log, typical(toolward.Allow), toolward.StatusOK)
			}
			log.Close()
			if test.change != "" {
				mustWrite(t, db, test.change)
			}
			var told error
			again := startLog(t, db, audit.Options{OnUnavailable: func(err error) { told = err }})
			id := decide(t, again, typical(toolward.Allow), toolward.StatusOK)
			_, err := again.Verify(t.Context())
			anomalies, _ := again.Query(t.Context(), audit.Filter{Type: audit.TypeAnomaly})
			again.Close()
			if test.want == "" {
				if told != nil || err != nil || len(anomalies) != 0 {
					t.Errorf("told %v, verify %v, %d anomalies", told, err, len(anomalies))
				}
				return
			}
			if told == nil || !strings.Contains(told.Error(), test.want) {
				t.Errorf("told %v, want %q", told, test.want)
			}
			if len(anomalies) != 1 {
				t.Errorf("%d anomalies recorded, want 1", len(anomalies))
			}
			if id <= 6 && test.name != "seal removed" {
				t.Errorf("position %d was given out twice", id)
			}
		})
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

func TestExportIsVerifiable(t *testing.T) {
	log, db := openLog(t, audit.Options{CheckpointEvery: 5})
	for range 10 {
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	}
	var out bytes.Buffer
	if err := audit.Export(t.Context(), NewAuditReader(db.Reader()), &out, 0); err != nil {
		t.Fatal(err)
	}
	report, err := audit.VerifyExport(bytes.NewReader(out.Bytes()), log.PublicKey())
	if err != nil || report.Records < 20 || report.Checkpoints == 0 {
		t.Errorf("report %+v, error %v", report, err)
	}
	lines := bytes.SplitAfter(out.Bytes(), []byte("\n"))
	for _, test := range []struct {
		name  string
		lines [][]byte
		ok    bool
	}{
		{"from the middle", lines[4:], true},
		{"one missing", append(append([][]byte{}, lines[:4]...), lines[5:]...), false},
		{"one changed", append(append(append([][]byte{}, lines[:4]...), bytes.Replace(lines[4], []byte("coder"), []byte("other"), 1)), lines[5:]...), false},
		{"not a log", [][]byte{[]byte("{}\n")}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := audit.VerifyExport(bytes.NewReader(bytes.Join(test.lines, nil)), log.PublicKey())
			if (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
		})
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

func sha(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
