package tui

import (
	"bytes"
	"strings"
	"testing"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/internal/viewtest"
)

// TestScreensForgetNothing: neither the console nor the dialogue in a plain terminal leaves out what a person must see.
func TestScreensForgetNothing(t *testing.T) {
	t.Run("console", func(t *testing.T) {
		viewtest.Check(t, func(v *approval.View) string {
			var b strings.Builder
			for _, r := range rowsOf(v, 200) {
				b.WriteString(r.color + r.text + "\n")
			}
			return b.String()
		})
	})
	t.Run("dialogue", func(t *testing.T) {
		viewtest.Check(t, func(v *approval.View) string {
			var b bytes.Buffer
			(&Terminal{out: &b, width: func() int { return 200 }}).printView(v, true)
			return b.String()
		})
	})
}
