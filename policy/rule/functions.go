package rule

import (
	"errors"
	"strings"

	"github.com/toolward/toolward/place"
)

// longestPath bounds the texts that pathUnder takes, in bytes: no system knows longer paths.
const longestPath = 4096

// pathUnder reports whether a path is a directory or below it, by whole segments. Both are absolute; "." and ".." are
// resolved in the text, so that "/srv/a/../b" is not under "/srv/a". Links are not followed: facts.paths and the real
// of facts.targets are those that the tool opens.
func pathUnder(file, dir string) (bool, error) {
	if err := checkPath(file); err != nil {
		return false, err
	}
	if err := checkPath(dir); err != nil {
		return false, err
	}
	return place.Within(file, dir), nil
}

func checkPath(text string) error {
	switch {
	case !strings.HasPrefix(text, "/"):
		return errors.New("the path is not absolute")
	case len(text) > longestPath:
		return errors.New("the path is too long")
	case strings.IndexByte(text, 0) >= 0:
		return errors.New("the path holds a NUL")
	}
	return nil
}
