package socket

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/internal/viewtest"
)

// TestQuestionForgetsNothing: the program at the socket is told what a person must see. The arguments are the preview's,
// and an "always" cannot be said there.
func TestQuestionForgetsNothing(t *testing.T) {
	viewtest.Check(t, func(v *approval.View) string {
		raw, err := json.Marshal(callOfView(v))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}, "Arguments", "Always")
}

// TestALongQuestionSaysThatItIsCut: what does not fit is not left out in silence, and our own reader takes the question.
func TestALongQuestionSaysThatItIsCut(t *testing.T) {
	v := viewtest.Full()
	for range 200 {
		v.Outline.Add(display.OutlineLine{Kind: display.LineNote, Label: strings.Repeat("é", 40)})
	}
	c := callOfView(v)
	c.Kind = "tool"
	if !strings.HasSuffix(c.Description, notShown) {
		t.Errorf("nothing says that it is cut: %q", c.Description)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := callOf(string(raw)); err != nil {
		t.Error(err)
	}
}
