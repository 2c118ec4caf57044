package gatetest_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/store"
)

// TestReplaySaysWhatTheShadowSaid takes random calls through gateways with a shadow policy, writes their records to a
// real log, and replays them: what is recomputed from a record is what the shadow said when the call was there, for the
// shadow and for the policy in force itself. Calls that a record says too little about are named as such, and are few.
func TestReplaySaysWhatTheShadowSaid(t *testing.T) {
	seen := map[string]int{}
	for n := range uint64(25) {
		live, shadow, records := recordedCalls(t, n)
		log, source := realLog(t)
		for i := range records {
			if _, err := log.Decide(t.Context(), &records[i]); err != nil {
				t.Fatal(err)
			}
		}
		i := 0
		check := func(snapshot *policy.Snapshot, want func(*toolward.DecisionRecord) *toolward.ShadowJudgment) {
			i = 0
			_, err := audit.Replay{Policy: snapshot, Gap: func(p *audit.Past) string { return snapshot.Gap(p.Request, p.Judged) }, Visit: func(p *audit.Past, got *toolward.ShadowJudgment, gap string) error {
				d := &records[i]
				i++
				want := want(d)
				switch {
				case gap != "":
					seen["gap: "+gap]++
				case (got == nil) != (want == nil) || got != nil && (got.Change != want.Change || got.Verdict != want.Verdict ||
					got.Code != want.Code || got.Row != want.Row || got.Partial != want.Partial || got.GrantOK != want.GrantOK):
					t.Errorf("world %d, record %d, %s: replayed %s, at the time %s\n%s", n, p.Seq, p.Tool, jsonOf(got), jsonOf(want), jsonOf(d))
				case got == nil:
					seen["same"]++
				default:
					seen[string(got.Change)]++
				}
				if p.Request.Facts.Analysis != nil && gap == "" {
					seen["analysed commands"]++
				}
				return nil
			}}.Run(t.Context(), source)
			if err != nil {
				t.Fatal(err)
			}
			if i != len(records) {
				t.Errorf("%d of %d records were replayed", i, len(records))
			}
		}
		check(shadow, func(d *toolward.DecisionRecord) *toolward.ShadowJudgment { return d.Shadow })
		check(live, func(*toolward.DecisionRecord) *toolward.ShadowJudgment { return nil })
	}
	t.Logf("%v", seen)
	for _, least := range []string{"same", "stricter", "looser", "other", "analysed commands"} {
		if seen[least] < 10 {
			t.Errorf("only %d calls are %s: the calls are not random enough to mean something", seen[least], least)
		}
	}
}

// recordedCalls makes random calls under a random policy with a random shadow.
func recordedCalls(t *testing.T, seed uint64) (live, shadow *policy.Snapshot, records []toolward.DecisionRecord) {
	synctest.Test(t, func(t *testing.T) {
		w := newLawWorld(t, rand.New(rand.NewPCG(seed, 7)), nil)
		defer w.approver.Close()
		w.addRules(t)
		shadow = w.live.Snapshot().(*policy.Snapshot)
		w.configure(t)
		w.addRules(t)
		live = w.live.Snapshot().(*policy.Snapshot)
		gateway := w.with(t, func(c *toolward.Config) { c.Shadow = policy.NewLive(shadow) })
		for range 60 {
			call := w.call()
			if w.IntN(10) == 0 {
				w.disturb(t, call.Session)
			}
			if call.Form != nil {
				form := *call.Form
				call.Form = &form
			}
			call.ClientAsks = call.ByClient // nobody is asked: the call is recorded at once
			if pass, err := gateway.Admit(withoutWait(t.Context()), call); err == nil {
				_ = pass.Close(t.Context(), toolward.OutcomeRecord{Status: toolward.StatusUnused})
			}
		}
		records = w.auditor.Decisions()
	})
	return live, shadow, records
}

// addRules adds random rules to the configuration in force. Some read contents, which records do not keep.
func (w *lawWorld) addRules(t *testing.T) {
	conditions := []string{
		`pathUnder(facts.paths[0], "/ws/dir")`, `facts.place == "workspace"`, `facts.targets.exists(t, t.op == "write" && t.left)`,
		`hostIn(facts.hosts[0], ["example.org"])`, `"chat:main:bob" in facts.recipients`, `caller.owner && level == "normal"`,
		`facts.deletes > 0 || facts.mutates`, `caller.workspace == "/other"`, `facts.action == "send"`, `facts.elevated`,
	}
	contents := [][2]string{
		{"write", `params.content == "hello"`},
		{"exec", `facts.command.contains("make")`},
		{"message", `facts.outbound.exists(o, o == "hello")`},
		{"read", `facts.targets.all(t, t.path.startsWith("/ws"))`},
		{"web_fetch", `facts.urls.exists(u, u.startsWith("https:"))`},
	}
	c := w.config
	for i := range w.IntN(6) {
		rule := policy.Rule{
			Name: string(rune('a' + i)), Tool: pick(w, "read", "write", "web_fetch", "message", "nodes", "mail", "process", "exec"),
			When: conditions[w.IntN(len(conditions))], Then: pick(w, "ask", "deny", "allow", "allow"), Reason: "of the test",
		}
		if w.IntN(3) == 0 {
			content := contents[w.IntN(len(contents))]
			rule.Tool, rule.When = content[0], content[1]
		}
		c.TEG.Rules = append(c.TEG.Rules, rule)
	}
	snapshot, _, err := policy.Compile(c, w.tools)
	if err != nil {
		t.Fatal(err)
	}
	w.live.Swap(snapshot)
}

// withoutWait ends before anybody can answer.
func withoutWait(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func realLog(t *testing.T) (*audit.Log, audit.Source) {
	home := filepath.Join(t.TempDir(), "home")
	db, err := store.Open(t.Context(), home, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	key, first, err := audit.LoadKey(db.Home())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), rows, audit.Options{Key: key, First: first, Redact: redact.Text, Escape: display.Block, Selectors: policy.Selectors()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log, rows
}
