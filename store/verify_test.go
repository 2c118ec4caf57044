package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/redact"
)

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
		{"everything removed", `DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`, "truncated", 1},
		{"everything removed, another statement kept", `DELETE FROM audit; UPDATE audit_seals SET kind = 'base'`, "signature", 20},
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
	err = db.Write(t.Context(), true, func(tx *Tx) error {
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

// dying is a store of a process that is killed after so many appends.
type dying struct {
	audit.Store
	left int
}

func (d *dying) Append(ctx context.Context, durable bool, add func(audit.Appender) error, ended func(bool)) error {
	if d.left--; d.left < 0 {
		return errors.New("killed")
	}
	return d.Store.Append(ctx, durable, add, ended)
}

// TestACrashWhileLostCallsAreConcluded: the next start concludes the rest.
func TestACrashWhileLostCallsAreConcluded(t *testing.T) {
	log, db := openLog(t, audit.Options{})
	for range 3 {
		decide(t, log, typical(toolward.Allow), "")
	}
	log.Close()
	records, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := audit.LoadKey(db.Home())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), &dying{records, 1}, audit.Options{Key: key, Redact: redact.Text, Escape: display.Block}); err == nil {
		t.Fatal("it was not killed")
	}
	again := startLog(t, db, audit.Options{})
	defer again.Close()
	lost, err := again.Query(t.Context(), audit.Filter{Status: "lost"})
	if err != nil || len(lost) != 3 {
		t.Errorf("%d of 3 decisions have an outcome: %v", len(lost), err)
	}
	verify(t, again)
}

// TestACrashBeforeTheFirstSeal: a log that a killed process left within its first second is whole, and not suspected.
func TestACrashBeforeTheFirstSeal(t *testing.T) {
	log, db := openLog(t, audit.Options{SealDelay: time.Hour})
	decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	again := startLog(t, db, audit.Options{OnBroken: func(err error) { t.Error(err) }})
	defer again.Close()
	if records, err := again.Query(t.Context(), audit.Filter{Type: audit.TypeAnomaly}); err != nil || len(records) > 0 {
		t.Errorf("the log is suspected: %+v, %v", records, err)
	}
	verify(t, again)
}

func TestAStartNoticesWhatWasDoneToTheLog(t *testing.T) {
	for _, test := range []struct{ name, change, want string }{
		{"nothing", ``, ""},
		{"cut off", `DELETE FROM audit WHERE seq > 4`, "ends at record 4"},
		{"emptied", `DELETE FROM audit`, "ends at record 0"},
		{"seal removed", `DELETE FROM audit_seals`, "seal of the log's end is missing"},
		{"everything removed", `DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`, "everything was deleted"},
		{"everything removed, a base seal left", `DELETE FROM audit; UPDATE audit_seals SET kind = 'base'`, "a seal says that it reached 6"},
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
			again := startLog(t, db, audit.Options{OnBroken: func(err error) { told = err }})
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
			// Without any seal nothing tells how far the log had reached.
			if id <= 6 && test.name != "seal removed" && test.name != "everything removed" {
				t.Errorf("position %d was given out twice", id)
			}
		})
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
	report, err := audit.VerifyExport(bytes.NewReader(out.Bytes()), log.PublicKey(), nil)
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
			_, err := audit.VerifyExport(bytes.NewReader(bytes.Join(test.lines, nil)), log.PublicKey(), nil)
			if (err == nil) != test.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func sha(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// TestVerifyWhileTheLogIsUsed: writing and retention at the same time are no
// break.
func TestVerifyWhileTheLogIsUsed(t *testing.T) {
	log, _ := openLog(t, audit.Options{CheckpointEvery: 20, SealDelay: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			d := typical(toolward.Allow)
			d.Facts.Mutates = false
			for ctx.Err() == nil {
				decide(t, log, d, toolward.StatusOK)
			}
		})
	}
	deleted := int64(0)
	for range 20 {
		n, err := log.Retain(t.Context(), time.Nanosecond)
		if err != nil {
			t.Error(err)
		}
		deleted += n
		verify(t, log)
	}
	cancel()
	wg.Wait()
	if deleted == 0 {
		t.Error("retention deleted nothing, so nothing was tested")
	}
}

// TestOddNamesDoNotLookLikeForgery: what a face or a model names must come
// back from the database as it stands in the record.
func TestOddNamesDoNotLookLikeForgery(t *testing.T) {
	log, _ := openLog(t, audit.Options{})
	for _, name := range []string{"", "a\x00b", "\xff\xfe", "\u202e", strings.Repeat("\u4e2d", 400), "\"'; DROP TABLE audit; --", "ｆｕｌｌ"} {
		d := typical(toolward.Deny)
		d.Tool, d.Call.Session, d.Call.Caller.Agent, d.Call.ID, d.Call.Run = name, toolward.SessionKey(name), name, name, name
		d.Params = toolward.NewParams([]byte(`"`+name+`"`), nil)
		d.Cause, d.Via, d.Code = name, "denied", toolward.CodeUnknownTool
		decide(t, log, d, toolward.StatusDenied)
		if _, err := log.Append(t.Context(), audit.Event{Type: audit.TypeLevel, Session: toolward.SessionKey(name), Agent: name, Tool: name, CallID: name}); err != nil {
			t.Fatal(err)
		}
	}
	verify(t, log)
}
