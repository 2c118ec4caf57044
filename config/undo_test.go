package config

import (
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/undo"
)

func TestWhatIsKeptOfWorkspaces(t *testing.T) {
	for text, want := range map[string]undo.Limits{
		`{}`: {File: 100 << 20, Total: 5_000_000_000, Age: 7 * 24 * time.Hour, Entries: 300_000},
		`{"undo": {"maxBytes": 1000000, "keepDays": 1, "fileBytes": 10, "files": 100}}`: {File: 10, Total: 1_000_000, Age: 24 * time.Hour, Entries: 100},
	} {
		if loaded, err := Parse("f", []byte(text)); err != nil || !loaded.File.Undo.Keeps() || loaded.File.Undo.Limits() != want {
			t.Errorf("%s: %v, %+v", text, err, loaded.File.Undo.Limits())
		}
	}
	if loaded, err := Parse("f", []byte(`{"undo": {"enabled": false}}`)); err != nil || loaded.File.Undo.Keeps() {
		t.Errorf("switched off it keeps: %v", err)
	}
	for text, want := range map[string]string{
		`{"undo": {"maxBytes": 999999}}`: "f:1:23: undo.maxBytes: 999999 is out of range: write 1000000 to ",
		`{"undo": {"keepDays": 366}}`:    "f:1:23: undo.keepDays: 366 is out of range: write 1 to 365",
		`{"undo": {"keepDays": 0}}`:      "f:1:23: undo.keepDays: 0 is out of range",
		`{"undo": {"fileBytes": -1}}`:    "f:1:24: undo.fileBytes: -1 is out of range",
		`{"undo": {"files": 99}}`:        "f:1:20: undo.files: 99 is out of range",
		`{"undo": {"enabled": "no"}}`:    "f:1:22: undo.enabled",
		`{"undo": {"maxbytes": 1}}`:      "f:1:11: undo.maxbytes: there is no such key",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
