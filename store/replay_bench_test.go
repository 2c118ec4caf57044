package store

import (
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/policy"
)

// BenchmarkReplay replays 100,000 recorded decisions by another policy.
func BenchmarkReplay(b *testing.B) {
	const calls = 100_000
	log, db := openLog(b, audit.Options{Selectors: policy.Selectors()})
	d := typical(toolward.Allow)
	d.Policy, d.Facts.Mutates = &d.Judgment, false // so that writing it does not wait for the disk
	for range calls {
		if _, err := log.Decide(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
	tools := []*toolward.Tool{{Name: "write", Schema: []byte(`{"type":"object"}`)}}
	snapshot, _, err := policy.Compile(policy.Config{TEG: policy.TEG{Preset: policy.PresetWorkspace}}, tools)
	if err != nil {
		b.Fatal(err)
	}
	replay := audit.Replay{Policy: snapshot, Gap: func(p *audit.Past) string { return snapshot.Gap(p.Request, p.Judged) }}
	source := NewAuditReader(db.reader)
	b.ResetTimer()
	for b.Loop() {
		out, err := replay.Run(b.Context(), source)
		if err != nil {
			b.Fatal(err)
		}
		if out.Total.Calls != calls || out.Total.NotReplayed > 0 {
			b.Fatalf("%+v", out)
		}
	}
	b.ReportMetric(float64(calls*b.N)/b.Elapsed().Seconds(), "records/s")
}
