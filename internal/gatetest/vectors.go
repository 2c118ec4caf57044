// Package gatetest is what the tests of several packages share: the runner of decision vectors, and plain
// collaborators for a real gateway.
package gatetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Case is one decision vector.
type Case struct {
	Name  string
	Kind  string
	Input json.RawMessage
	Want  json.RawMessage
}

// Vectors reads the cases of the given kinds from testdata/vectors/<file> of the package under test and, if
// TOOLWARD_VECTORS names a directory, from the file of the same name there. What stands in both is one case. A kind without
// any case fails the test: a runner that runs nothing proves nothing.
func Vectors(t testing.TB, file string, kinds ...string) map[string][]Case {
	t.Helper()
	paths := []string{filepath.Join("testdata", "vectors", file)}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		paths = append(paths, filepath.Join(dir, file))
	}
	byKind, seen := map[string][]Case{}, map[string]int{}
	for i, path := range paths {
		cases, err := readCases(path)
		if errors.Is(err, os.ErrNotExist) && i > 0 {
			continue
		}
		if err != nil {
			t.Fatalf("vectors: %v", err)
		}
		for _, c := range cases {
			id := c.Kind + "/" + c.Name
			if !slices.Contains(kinds, c.Kind) || seen[id] > 0 && seen[id] <= i {
				continue
			}
			if seen[id] > 0 {
				t.Fatalf("vectors: %s has %s twice", path, id)
			}
			seen[id] = i + 1
			byKind[c.Kind] = append(byKind[c.Kind], c)
		}
	}
	for _, kind := range kinds {
		if len(byKind[kind]) == 0 {
			t.Fatalf("vectors: %s has no case of kind %s", file, kind)
		}
	}
	return byKind
}

func readCases(path string) ([]Case, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Version, Area, Set, Topic, Layouts, Tolerance json.RawMessage

		Cases []struct {
			ID, Name, Kind, Category, Tag string
			Input, Want, Expect           json.RawMessage
		}
	}
	if err := strictly(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var cases []Case
	for _, c := range doc.Cases {
		kind, name, want := c.Kind, c.Name, c.Want
		if kind == "" {
			kind = c.Category
		}
		if c.ID != "" {
			name = c.ID + " " + c.Name
		}
		if want == nil {
			want = c.Expect
		}
		cases = append(cases, Case{Name: name, Kind: kind, Input: c.Input, Want: want})
	}
	return cases, nil
}

// notPlayed ends a case that needs code that is not there yet.
type notPlayed string

// Waits ends a case that needs code that is not there yet, with the reason, within [Play]. It counts neither as held nor as failed.
func Waits(t *testing.T, reason string) {
	t.Helper()
	panic(notPlayed(reason))
}

// Play runs cases of a kind, each by itself, and logs "vectors <file> <kind>: held/total held", and how many were not played and why.
func Play(t *testing.T, file, kind string, cases []Case, play func(t *testing.T, c Case)) {
	t.Helper()
	held, skipped := 0, map[string]int{}
	for _, c := range cases {
		reason := ""
		ok := t.Run(kind+"/"+c.Name, func(t *testing.T) {
			defer func() {
				switch why := recover().(type) {
				case nil:
				case notPlayed:
					reason = string(why)
				default:
					panic(why)
				}
			}()
			play(t, c)
		})
		switch {
		case reason != "":
			skipped[reason]++
		case ok:
			held++
		}
	}
	total := len(cases)
	for _, n := range skipped {
		total -= n
	}
	t.Logf("vectors %s %s: %d/%d held", file, kind, held, total)
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		t.Logf("vectors %s %s: %d not played: %s", file, kind, skipped[reason], reason)
	}
}

// Run runs every case of one kind: answer gets the input and returns what the program says, which is compared with
// the wanted value as JSON, whole and deep.
func Run(t *testing.T, file, kind string, answer func(t *testing.T, input json.RawMessage) any) {
	t.Helper()
	Play(t, file, kind, Vectors(t, file, kind)[kind], func(t *testing.T, c Case) {
		got := roundTrip(t, answer(t, c.Input))
		var want any
		if err := json.Unmarshal(c.Want, &want); err != nil {
			t.Fatalf("want: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("input %s\n(-want +got)\n%s", c.Input, diff)
		}
	})
}

// RunAsserted runs vectors of which only the keys that the wanted value has are asserted.
func RunAsserted(t *testing.T, file, kind string, answer func(t *testing.T, input json.RawMessage) map[string]any) {
	t.Helper()
	Play(t, file, kind, Vectors(t, file, kind)[kind], func(t *testing.T, c Case) { CompareAsserted(t, c, answer(t, c.Input)) })
}

// CompareAsserted fails the test if the answer differs in a key that the wanted value has.
func CompareAsserted(t testing.TB, c Case, answer map[string]any) {
	t.Helper()
	var want, got map[string]any
	Decode(t, c.Want, &want)
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	Decode(t, raw, &got)
	for key := range got {
		if _, asserted := want[key]; !asserted {
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("input %s\n(-want +got)\n%s", c.Input, diff)
	}
}

// Decode reads a case's input into v. A field that v does not have fails the test: a runner that drops a field has not
// played the case.
func Decode(t testing.TB, input json.RawMessage, v any) {
	t.Helper()
	if err := strictly(input, v); err != nil {
		t.Fatalf("input %s: %v", input, err)
	}
}

func strictly(raw json.RawMessage, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if dec.More() {
		return errors.New("something follows the value")
	}
	return nil
}

func roundTrip(t testing.TB, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("marshal answer: %v", err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
