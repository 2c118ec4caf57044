package audit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWhatIsWrittenIsRead gives every field of the record's one form a value. Written by hand, in canonical form, and read by
// encoding/json, they must all be there again: a field that is added to the form and forgotten in appendTo, or written out of
// its order, would break the chain's promise or be lost to replays.
func TestWhatIsWrittenIsRead(t *testing.T) {
	var whole decided
	fill(reflect.ValueOf(&whole).Elem())
	whole.Time = moment(time.Date(2026, 3, 1, 11, 30, 45, 678_000_000, time.UTC))
	whole.Facts.Params = keptParams{{"action", "push"}, {"elevated", true}}
	whole.Shadow.Partial = false // otherwise it has no verdict
	partial := whole
	shadow := *whole.Shadow
	shadow.Partial, shadow.Verdict = true, 0
	partial.Shadow = &shadow
	for name, kept := range map[string]*decided{"whole": &whole, "partial": &partial, "empty": {Time: whole.Time}} {
		t.Run(name, func(t *testing.T) {
			var e entry
			kept.appendTo(&e)
			written := text(&e)
			if want := canonical(t, written); written != want {
				t.Errorf("not canonical:\n got %s\nwant %s", written, want)
			}
			var read decided
			if err := json.Unmarshal([]byte(written), &read); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(kept, &read, cmp.AllowUnexported(keptParam{}), cmp.Comparer(func(a, b moment) bool {
				return time.Time(a).Equal(time.Time(b))
			})); diff != "" {
				t.Errorf("read back (-written +read):\n%s", diff)
			}
		})
	}
	var e entry
	whole.appendTo(&e)
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text(&e)), &object); err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[decided]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); object[name] == nil {
			t.Errorf("%s is not written", f.Name)
		}
	}
}

// fill sets every exported field below v to something.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString(`a "text" — of some kind`)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1) // of words: the second
	}
}
