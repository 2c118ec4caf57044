package api

import "testing"

// The status says whether the gateway protects.
func TestModeOfTheStatus(t *testing.T) {
	for _, observes := range []bool{true, false} {
		s := &Server{observes: observes}
		if got := s.mode() == "shadow"; got != observes {
			t.Errorf("observes %v: status says %s", observes, s.mode())
		}
	}
}
