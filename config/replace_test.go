package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolward/toolward/config"
)

func TestAFileIsReplacedOnlyIfItIsWhatWasRead(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	path := filepath.Join(home, config.FileName)
	for _, c := range []struct {
		name, before, after, want string
		err                       error
	}{
		{name: "new", after: "1", want: "1"},
		{name: "somebody else made it first", after: "2", want: "1", err: config.ErrChanged},
		{name: "what was read", before: "1", after: "2", want: "2"},
		{name: "changed since", before: "1", after: "3", want: "2", err: config.ErrChanged},
	} {
		err := config.Replace(path, []byte(c.before), []byte(c.after))
		got, readErr := os.ReadFile(path)
		if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) || readErr != nil || string(got) != c.want {
			t.Errorf("%s: %v, and the file says %q, %v", c.name, err, got, readErr)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
