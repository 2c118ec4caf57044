package gateway

import (
	"fmt"
	"testing"
)

// TestWarnedOnce: a warning is new once, until many others have come.
func TestWarnedOnce(t *testing.T) {
	var w warned
	if !w.first("a") || w.first("a") || !w.first("b") {
		t.Error("not once per text")
	}
	for i := range maxWarned - 1 {
		if !w.first(fmt.Sprint(i)) {
			t.Fatalf("%d is taken for another", i)
		}
	}
	if w.first("b") || !w.first("a") {
		t.Error("the oldest is not the one that is forgotten")
	}
	if len(w.said) > maxWarned {
		t.Errorf("%d are remembered", len(w.said))
	}
}
