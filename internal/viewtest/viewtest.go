// Package viewtest checks that a renderer of approvals forgets nothing that a person must see.
package viewtest

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// marker is a word that stands in one place of a full view and nowhere else.
var marker = regexp.MustCompile(`marker[a-z]+`)

// Full is a view of which every field is set, every text of it to a marker.
func Full() *approval.View {
	return &approval.View{
		Severity: toolward.Warning, Agent: "markeragent", Caller: "markercaller", Level: toolward.Elevated,
		Title: "markertitle", Says: "markersays",
		Findings: outline(display.LineFinding, "markerdangerlabel", "markerdangertext", "markerdangernote"),
		Command:  "markercommand", Directory: "markerdirectory", Diff: "+markerdiff",
		Outline:   outline(display.LineCommand, "markerlabel", "markertext", "markernote"),
		Variables: []string{"markervariable"}, Targets: []string{"write /markertarget", "markerhost"},
		Arguments: []approval.Argument{{Name: "markername", Text: "markervalue"}}, Cut: true,
		Reasons: []approval.Reason{{Text: "markercode: markerseen", Code: "markercode", Seen: "markerseen"}, {Text: "markerreason"}},
		Always:  []approval.Offer{{Text: "markeroffer", Narrows: true}, {Text: "markersecond"}},
		Expires: time.Now().Add(time.Minute), Digest: "markerdigest",
		Facts: []approval.Fact{{Name: "markerfact", Value: "markerfactvalue"}},
	}
}

func outline(kind display.LineKind, label, text, note string) *display.Outline {
	return &display.Outline{Lines: []display.OutlineLine{{Kind: kind, Mark: display.MarkAsk, Label: label, Text: text, Note: note}}}
}

// Check fails unless render shows every field of a view: each marker, and what is no text by making a difference. It
// stops a renderer from leaving out what its readers then approve without having seen it. Fields named in elsewhere are
// shown by other means.
func Check(t *testing.T, render func(v *approval.View) string, elsewhere ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // whose clock stands still: two renderings differ by their views only
		full := render(Full())
		fields := reflect.TypeFor[approval.View]()
		for i := range fields.NumField() {
			name, without := fields.Field(i).Name, Full()
			field := reflect.ValueOf(without).Elem().Field(i)
			if field.IsZero() {
				t.Fatalf("Full does not set the field %s", name)
			}
			if slices.Contains(elsewhere, name) {
				continue
			}
			for _, word := range markersOf(t, field.Interface()) {
				if !strings.Contains(strings.ToLower(full), word) { // a sentence begins with a capital
					t.Errorf("%s: %s is not shown", name, word)
				}
			}
			if field.Kind() == reflect.Pointer {
				continue // an outline, which its markers stand for
			}
			field.SetZero()
			if render(without) == full {
				t.Errorf("%s makes no difference", name)
			}
		}
	})
}

func markersOf(t *testing.T, value any) []string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return marker.FindAllString(string(raw), -1)
}
