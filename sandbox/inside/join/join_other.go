//go:build !linux

package join

import "errors"

// Connect: sandboxes are Linux.
func Connect(string) error { return errors.ErrUnsupported }
