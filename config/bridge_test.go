package config

import "testing"

// Where nothing is said, clients run what was judged; a file that says false is obeyed.
func TestClientsRunWhatWasJudged(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `{"bridge": {}}`: true, `{"bridge": {"attended": "client"}}`: true,
		`{"bridge": {"enforceText": true}}`: true, `{"bridge": {"enforceText": false}}`: false,
	} {
		if loaded, err := Parse("f", []byte(text)); err != nil || loaded.File.Bridge.Enforces() != want {
			t.Errorf("%s: %v, want %t", text, err, want)
		}
	}
}
