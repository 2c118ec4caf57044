package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
)

// TestCheckpointsKeptElsewhere: what passes every check of the log itself, because it was made with the log's own key or is an
// old state of the whole, does not pass a checkpoint that was kept elsewhere.
func TestCheckpointsKeptElsewhere(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, db *DB)
		kind   string
		seq    int64
	}{
		{"untouched", func(*testing.T, *DB) {}, "", 0},
		{"wiped, and begun anew", func(t *testing.T, db *DB) {
			mustWrite(t, db, `DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`)
			startLog(t, db, audit.Options{}).Close()
		}, "truncated", 2},
		{"cut off, and sealed anew with the key", func(t *testing.T, db *DB) {
			mustWrite(t, db, `DELETE FROM audit WHERE seq > 4; DELETE FROM audit_seals`)
			startLog(t, db, audit.Options{}).Close()
		}, "truncated", 6},
		{"written anew with the key", func(t *testing.T, db *DB) {
			mustWrite(t, db, `DELETE FROM audit; DELETE FROM audit_seals; DELETE FROM audit_times`)
			forged := startLog(t, db, audit.Options{})
			for range 5 {
				decide(t, forged, typical(toolward.Deny), toolward.StatusDenied)
			}
			forged.Close()
		}, "changed", 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			var kept []audit.Seal
			log, db := openLog(t, audit.Options{OnSeal: func(s audit.Seal) { kept = append(kept, s) }})
			for range 3 {
				decide(t, log, typical(toolward.Allow), toolward.StatusOK)
			}
			log.Close()
			test.change(t, db)
			seals := readStatements(t, log, kept)
			_, err := audit.Verify(t.Context(), NewAuditReader(db.Reader()), log.PublicKey(), seals)
			broken := &audit.Break{}
			if err != nil && !errors.As(err, &broken) {
				t.Fatal(err)
			}
			if broken.Kind != test.kind || broken.Seq != test.seq {
				t.Errorf("got %v, want %q at %d", err, test.kind, test.seq)
			}
			if _, err := audit.Verify(t.Context(), NewAuditReader(db.Reader()), log.PublicKey(), nil); err != nil {
				t.Errorf("without the checkpoints: %v; this case shows nothing", err)
			}
		})
	}
}

// readStatements reads seals back out of a log of the system, with words before and behind them and other lines between.
func readStatements(t *testing.T, log *audit.Log, seals []audit.Seal) []audit.Seal {
	t.Helper()
	var file bytes.Buffer
	for i := range seals {
		fmt.Fprintf(&file, "sshd[1]: session opened\n<110>1 host toolward 1 - - %s\n%s\n", seals[i].Line(), strings.Repeat("x", 200<<10))
	}
	list, err := audit.ReadStatements(&file, log.PublicKey())
	if err != nil || len(list) != len(seals) || len(list) == 0 {
		t.Fatalf("%d of %d checkpoints read: %v", len(list), len(seals), err)
	}
	return list
}

// TestForgedStatements: a checkpoint that another key signed, that was changed or cut off is not passed over in silence.
func TestForgedStatements(t *testing.T) {
	seal := func(first bool) (line string, log *audit.Log) {
		log, _ = openLog(t, audit.Options{OnSeal: func(s audit.Seal) { line = string(s.Line()) }})
		decide(t, log, typical(toolward.Allow), toolward.StatusOK)
		log.Close()
		return line, log
	}
	good, log := seal(true)
	other, _ := seal(true)
	for name, line := range map[string]string{
		"another key": other,
		"lowered":     strings.Replace(good, `"seq":2`, `"seq":1`, 1),
		"cut off":     good[:len(good)-20],
		"no hash":     strings.Replace(good, `"hash":"`, `"hash":"x`, 1),
	} {
		_, err := audit.ReadStatements(strings.NewReader(good+"\n"+line+"\n"), log.PublicKey())
		if broken, ok := errors.AsType[*audit.Break](err); !ok || broken.Kind != "signature" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := audit.ReadStatements(strings.NewReader(good), log.PublicKey()); err != nil {
		t.Error(err)
	}
}

// TestAnUnsignedExport: a chain of hashes alone can be computed by anybody, and a checkpoint on demand signs it.
func TestAnUnsignedExport(t *testing.T) {
	log, db := openLog(t, audit.Options{})
	decide(t, log, typical(toolward.Allow), toolward.StatusOK)
	export := func() (audit.Report, error) {
		var out bytes.Buffer
		if err := audit.Export(t.Context(), NewAuditReader(db.Reader()), &out, 0); err != nil {
			t.Fatal(err)
		}
		return audit.VerifyExport(&out, log.PublicKey(), nil)
	}
	if _, err := export(); err == nil {
		t.Error("an export without a signature verifies")
	}
	for range 2 { // the second has nothing new to sign
		if err := log.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	if report, err := export(); err != nil || report.Sealed != report.Last-1 || report.Checkpoints != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}
