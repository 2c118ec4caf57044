package console

import (
	"strings"
	"testing"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/viewtest"
)

// TestCardForgetsNothing: the card of a waiting call leaves out nothing that a person must see.
func TestCardForgetsNothing(t *testing.T) {
	viewtest.Check(t, func(v *approval.View) string {
		c := cardOfView("deploy", v)
		c.Answerable = true
		var b strings.Builder
		if err := templates().ExecuteTemplate(&b, "card", c); err != nil {
			t.Fatal(err)
		}
		return b.String()
	})
}

// TestTitlesOfOthers: a program may give its call the name of a tool that we know, and any title.
func TestTitlesOfOthers(t *testing.T) {
	for title, want := range map[string]string{"write: a.go": "a.go", "Deploy to production": "Deploy to production", "write": ""} {
		var got strings.Builder
		_, object := titleOf("write", &approval.View{Title: title})
		for _, piece := range object {
			got.WriteString(piece.Text)
		}
		if got.String() != want {
			t.Errorf("%q: shown as %q, want %q", title, got.String(), want)
		}
	}
}
