package desk_test

import (
	"context"
	"os"
	"testing"

	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
)

const makeAllowed = `{"version":1,"agents":{"*":{"allowlist":[{"pattern":"/usr/bin/make"}]}}}`

func allowsMake(w *world) bool { return len(w.allowlist.Current().Allowlist("main")) > 0 }

func TestChangesOfTheAllowlist(t *testing.T) {
	entry := allowlist.Entry{Pattern: "/usr/bin/make"}
	allow := func(ctx context.Context, w *world, v desk.Visitor) error {
		_, err := w.desk.AllowProgram(ctx, v, "", entry)
		return err
	}
	for _, o := range []operation{
		{"replace", "exec-approvals changed", nil, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.ReplaceAllowlist(ctx, v, []byte(makeAllowed), w.allowlist.Current().Hash)
			return err
		}, allowsMake},
		{"allow", "exec-approvals changed", nil, allow, allowsMake},
		{"disallow", "exec-approvals changed", func(t *testing.T, w *world) { must(t, allow(t.Context(), w, w.person())) }, func(ctx context.Context, w *world, v desk.Visitor) error {
			_, err := w.desk.DisallowProgram(ctx, v, "", "/usr/bin/make")
			return err
		}, func(w *world) bool { return !allowsMake(w) }},
	} {
		o.loosens(t)
	}
}

func TestAllowlistNeedsRight(t *testing.T) {
	w := newWorld(t)
	if _, err := w.desk.Allowlist(t.Context(), desk.Visitor{}); desk.CodeOf(err) != desk.NotAllowed {
		t.Errorf("nobody reads it: %v", err)
	}
	if _, err := w.desk.Allowlist(t.Context(), w.person()); err != nil || len(w.events) != 0 {
		t.Errorf("a person reads it: %v, recorded %v", err, w.events)
	}
}

// What cannot be done says why, and is not recorded.
func TestAllowlistCodes(t *testing.T) {
	w := newWorld(t)
	person := w.person()
	if _, err := w.desk.Allowlist(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	replace := func(content, base string) error {
		_, err := w.desk.ReplaceAllowlist(t.Context(), person, []byte(content), base)
		return err
	}
	for want, err := range map[desk.Code]error{
		desk.BaseRequired: replace(makeAllowed, ""),
		desk.BaseChanged:  replace(makeAllowed, "00"),
		desk.Invalid:      replace(`{"version":7}`, w.allowlist.Current().Hash),
	} {
		if desk.CodeOf(err) != want {
			t.Errorf("%v, want code %s", err, want)
		}
	}
	if _, err := w.desk.AllowProgram(t.Context(), person, "main", allowlist.Entry{Pattern: "make"}); desk.CodeOf(err) != desk.Invalid {
		t.Errorf("a pattern that is no path: %v", err)
	}
	if change, err := w.desk.DisallowProgram(t.Context(), person, "main", "/no/such"); err != nil || change.Changed {
		t.Errorf("what is not there is taken away: %v, %v", change, err)
	}
	must(t, os.WriteFile(w.allowlist.Path(), []byte("{"), 0o600))
	if _, err := w.desk.DisallowProgram(t.Context(), person, "", "/usr/bin/make"); desk.CodeOf(err) != desk.Corrupt {
		t.Errorf("a corrupt file: %v", err)
	}
	if len(w.events) != 0 || allowsMake(w) {
		t.Errorf("recorded, though nothing was done: %v", w.events)
	}
	none, err := desk.New(desk.Options{Audit: w})
	must(t, err)
	if _, err := none.Allowlist(t.Context(), person); desk.CodeOf(err) != desk.NotKept {
		t.Errorf("a gateway without one: %v", err)
	}
}
