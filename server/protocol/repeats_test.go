package protocol

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatsOfLongCalls: what runs for longer than answers are kept is not carried out again by a repeat, neither while it runs
// nor right after it, and not because others send many calls meanwhile.
func TestRepeatsOfLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, ran := newRepeats(), 0
		long := repeatKey{"client", "tools.invoke", "long"}
		run := func() (any, *Error) {
			ran++
			time.Sleep(2 * keepAnswers)
			return ran, nil
		}
		do := func() {
			if answer, failed := r.do(t.Context(), long, []byte("{}"), run); answer != 1 || failed != nil {
				t.Errorf("answer %v, %v", answer, failed)
			}
		}
		go do()
		time.Sleep(keepAnswers + time.Second)
		for i := range 2 * maxKept {
			_, _ = r.do(t.Context(), repeatKey{"other", "tools.invoke", fmt.Sprint(i)}, nil, func() (any, *Error) { return nil, nil })
		}
		do()
		time.Sleep(keepAnswers - time.Second)
		do()
		if ran != 1 {
			t.Errorf("it ran %d times", ran)
		}
		if len(r.kept) != len(r.next) || len(r.kept) > maxKept+1 {
			t.Errorf("%d kept, %d in order", len(r.kept), len(r.next))
		}
		time.Sleep(2 * time.Second)
		_, _ = r.do(t.Context(), repeatKey{"other", "tools.invoke", "last"}, nil, func() (any, *Error) { return nil, nil })
		if len(r.kept) != 1 || len(r.next) != 1 {
			t.Errorf("%d answers are left after their time", len(r.kept)-1)
		}
	})
}
