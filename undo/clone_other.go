//go:build !linux

package undo

import (
	"errors"
	"os"
)

// clone is for Linux; elsewhere files are copied.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }
