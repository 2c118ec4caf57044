package config

import (
	"fmt"
	"path/filepath"

	"github.com/toolward/toolward/place"
)

// CheckCheckpoints refuses a file of checkpoints in the home: whoever changes the record there changes it, too.
func CheckCheckpoints(home string) Check {
	return func(f File) []error {
		path := f.TEG.Audit.Checkpoints.File
		if path == "" {
			return nil
		}
		real := path
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			real = filepath.Join(dir, filepath.Base(path))
		}
		if place.Within(path, home) || place.Within(real, home) {
			return []error{keyError{"teg.audit.checkpoints.file", fmt.Sprintf("%q lies in the home: name a file that whoever can change the record cannot change", path)}}
		}
		return nil
	}
}
