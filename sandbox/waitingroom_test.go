package sandbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// roomBox is a sandbox that only runs or not.
type roomBox struct {
	Handle
	runs bool
}

func (b *roomBox) Runs() bool { return b.runs }

func TestWaitingRoom(t *testing.T) {
	spec := &Spec{Name: "a", Hash: "1", ScopeKey: "agent:main"}
	begin := func() *roomBox { return &roomBox{} }
	succeed := func(b *roomBox) error { b.runs = true; return nil }

	t.Run("one makes it and the others wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var room WaitingRoom[*roomBox]
			made, goOn := 0, make(chan struct{})
			got := make(chan *roomBox, 3)
			for range 3 {
				go func() {
					b, err := room.Ensure(t.Context(), spec, begin, func(b *roomBox) error {
						made++
						<-goOn
						return succeed(b)
					})
					if err != nil {
						t.Error(err)
					}
					got <- b
				}()
			}
			synctest.Wait()
			if len(got) > 0 || len(room.All()) > 0 {
				t.Error("a sandbox was used while it was made")
			}
			close(goOn)
			if a, b, c := <-got, <-got, <-got; made != 1 || a != b || b != c {
				t.Errorf("%d were made", made)
			}
		})
	})

	t.Run("whoever waited for one that failed makes it anew, when nothing of it is left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var room WaitingRoom[*roomBox]
			failed, goOn := errors.New("no"), make(chan struct{})
			first := make(chan error, 1)
			go func() {
				_, err := room.Ensure(t.Context(), spec, begin, func(*roomBox) error { <-goOn; return failed })
				first <- err
			}()
			synctest.Wait()
			second := make(chan *roomBox, 1)
			go func() {
				b, err := room.Ensure(t.Context(), spec, begin, succeed)
				if err != nil {
					t.Error(err)
				}
				second <- b
			}()
			synctest.Wait()
			close(goOn)
			if err := <-first; !errors.Is(err, failed) {
				t.Errorf("the maker got %v", err)
			}
			b := <-second
			if held, _ := room.Look("a"); b == nil || held != b {
				t.Error("the second is not the one that is held")
			}
			// One that has ended keeps its name until what is left of it is gone.
			b.runs = false
			third := make(chan *roomBox, 1)
			go func() {
				b, _ := room.Ensure(t.Context(), spec, begin, succeed)
				third <- b
			}()
			synctest.Wait()
			if len(third) > 0 {
				t.Fatal("a sandbox was made beside the end of another")
			}
			room.Leave("a", b)
			if next := <-third; next == b {
				t.Error("one that had ended was used")
			}
		})
	})

	t.Run("another configuration, another scope, a closed engine", func(t *testing.T) {
		var room WaitingRoom[*roomBox]
		if _, err := room.Ensure(t.Context(), spec, begin, succeed); err != nil {
			t.Fatal(err)
		}
		for _, other := range []*Spec{{Name: "a", Hash: "2", ScopeKey: "agent:main"}, {Name: "a", Hash: "1", ScopeKey: "agent:x"}} {
			if _, err := room.Ensure(t.Context(), other, begin, succeed); CodeOf(err) != CodeConflict {
				t.Errorf("%+v: %v", other, err)
			}
		}
		if names, first := room.Close(); len(names) != 1 || !first {
			t.Errorf("Close() = %v, %v", names, first)
		}
		if _, err := room.Ensure(t.Context(), &Spec{Name: "b"}, begin, succeed); CodeOf(err) != CodeUnavailable {
			t.Errorf("a closed engine: %v", err)
		}
	})

	t.Run("who waits may give up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var room WaitingRoom[*roomBox]
			goOn := make(chan struct{})
			go room.Ensure(t.Context(), spec, begin, func(b *roomBox) error { <-goOn; return succeed(b) }) // it is about the other
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := room.Ensure(ctx, spec, begin, succeed); CodeOf(err) != CodeTimeout {
				t.Errorf("who gave up got %v", err)
			}
			if _, _, err := room.Settled(ctx, "a"); CodeOf(err) != CodeTimeout {
				t.Errorf("who gave up got %v", err)
			}
			close(goOn)
		})
	})
}
