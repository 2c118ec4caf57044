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

// What is wrong with the gateway itself is on every page, as text.
func TestTroubleIsOnThePage(t *testing.T) {
	w := httptest.NewRecorder()
	if err := renderPage(w, 200, "queue", queuePage{page: page{Title: "Waiting", Trouble: []string{"the record <is> not as it was left"}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Body.String(), "the record &lt;is&gt; not as it was left") {
		t.Error(w.Body.String())
	}
}
