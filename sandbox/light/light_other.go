//go:build !linux

package light

import (
	"errors"

	"github.com/toolward/toolward/job"
)

// box: there are none on this system.
type box struct{}

func (b *box) End() {}

func (l *Light) probe() Check {
	return Check{Mode: None, Found: "this system has neither namespaces nor Landlock"}
}

// Confine confines nothing on this system.
func (l *Light) Confine(*job.Plan, *Scene) error { return errors.ErrUnsupported }
