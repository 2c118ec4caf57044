package approval

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
)

// After three questions of a session in lockdown the next ones offer a fresh context; a calmer one ends that.
func TestManyQuestionsInLockdownOfferAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newMemory(), nil)
		attach(t, m, alice)
		n := 0
		offers := func(key toolward.SessionKey, level toolward.Level) bool {
			t.Helper()
			n++
			q := question(func(r *toolward.Request, j *toolward.Judgment) {
				r.Level, r.Call.Session, r.Call.Run = level, key, fmt.Sprint("run-", n)
				for range 2 * maxReasons {
					j.Reasons = append(j.Reasons, toolward.Reason{Text: "one of many"})
				}
			})
			result := ask(t.Context(), m, q)
			synctest.Wait()
			r := only(t, m)
			if _, err := answer(m, alice, r.ID, "deny"); err != nil {
				t.Fatal(err)
			}
			<-result
			if len(r.Request.Reasons) > maxReasons {
				t.Errorf("%d reasons", len(r.Request.Reasons))
			}
			return slices.Contains(r.Request.Reasons, offerReset)
		}
		const here, there = toolward.SessionKey("agent:coder:here"), toolward.SessionKey("agent:coder:there")
		for i := range 5 {
			if got := offers(here, toolward.Lockdown); got != (i >= 3) {
				t.Errorf("question %d in lockdown offers a reset: %v", i+1, got)
			}
		}
		if offers(there, toolward.Lockdown) {
			t.Error("another session's questions count")
		}
		if offers(here, toolward.Elevated) || offers(here, toolward.Lockdown) {
			t.Error("a session that has left lockdown is still offered a reset")
		}
	})
}
