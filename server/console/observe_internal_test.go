package console

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// Nobody can take a gateway that only observes for one that protects.
func TestShadowModeIsOnThePage(t *testing.T) {
	for _, observes := range []bool{true, false} {
		w := httptest.NewRecorder()
		if err := renderPage(w, 200, "queue", queuePage{page: page{Title: "Waiting", Observe: observes}}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(w.Body.String(), "Shadow mode: no protection"); got != observes {
			t.Errorf("observes %v: shown %v", observes, got)
		}
	}
}
