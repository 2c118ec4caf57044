package audit_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/audit"
)

// scanned is a source of records that need not be sound.
type scanned struct {
	audit.Source
	records []audit.Record
}

func (s scanned) Scan(_ context.Context, from int64, visit func(*audit.Record) error) error {
	for i := range s.records {
		if s.records[i].Seq < from {
			continue
		}
		if err := visit(&s.records[i]); err != nil {
			return err
		}
	}
	return nil
}

func TestExportCSV(t *testing.T) {
	hostile := []string{"=cmd|' /C calc'!A0", "+1+1", "a;=1", "a,\"=1", "x\n=1", "\x1b[2J\r=1", strings.Repeat("=1", 40_000)}
	var source scanned
	for i, text := range hostile {
		raw, err := json.Marshal(map[string]string{"preview": text})
		if err != nil {
			t.Fatal(err)
		}
		source.records = append(source.records, audit.Record{
			Seq: int64(i + 1), Time: time.UnixMilli(0), Type: audit.TypeDecision, Agent: text, Session: text, Tool: text, Verdict: "deny", JSON: string(raw),
		})
	}
	var b bytes.Buffer
	if err := audit.ExportCSV(t.Context(), source, &b, 2); err != nil {
		t.Fatal(err)
	}
	if n, want := strings.Count(b.String(), "\n"), len(hostile); n != want {
		t.Errorf("%d lines instead of %d: a text breaks lines", n, want)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(rows[0], ","); got != "seq,time,type,ref,agent,session,tool,verdict,status,code,level,text,error,data" {
		t.Errorf("columns %s", got)
	}
	if rows[1][0] != "2" || rows[1][1] != "1970-01-01T00:00:00.000Z" || rows[1][7] != "deny" || rows[1][4] != "⟦+⟧1+1" {
		t.Errorf("first row %q", rows[1])
	}
	for _, row := range rows[1:] {
		for _, cell := range row {
			// However the table is cut into cells, none begins as a formula does.
			for _, part := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(",;|\"\t\r\n", r) }) {
				if part = strings.TrimLeft(part, " "); part != "" && strings.ContainsRune("=+-@", rune(part[0])) {
					t.Errorf("a formula: %.80q in %.80q", part, cell)
				}
			}
			if len(cell) > 32_000 {
				t.Errorf("a cell of %d bytes", len(cell))
			}
		}
	}
}
