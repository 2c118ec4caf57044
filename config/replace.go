package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrChanged says that a file is not what it was when it was read.
var ErrChanged = errors.New("has changed meanwhile")

// Replace writes a configuration file that was read as before: nil, if there was none. Nobody else may have changed it since
// ([ErrChanged]), because their change would be lost. A crash leaves the old file or the new one.
func Replace(path string, before, after []byte) error {
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, before) {
		return fmt.Errorf("%s %w", path, ErrChanged)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".toolward-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(after)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
