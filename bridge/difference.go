package bridge

import (
	"bytes"
	"errors"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
)

const (
	maxDiffFile = 1 << 20  // larger files are not read for a difference
	maxDiff     = 64 << 10 // bytes of a difference
)

// diffOfWrite shows what writing the whole file changes.
func diffOfWrite(l *factsFinder, r *toolward.Request) (string, error) {
	old, err := l.current(r)
	if err != nil {
		return "", err
	}
	return unified(r.Params.Text("path"), old, r.Params.Text("content")), nil
}

// diffOfEdit shows what replacing a text changes.
func diffOfEdit(l *factsFinder, r *toolward.Request) (string, error) {
	old, err := l.current(r)
	if err != nil {
		return "", err
	}
	from, to := r.Params.Text("oldText"), r.Params.Text("newText")
	all, _ := r.Params.Bool("replace_all")
	switch {
	case from == "" && old == "":
		return unified(r.Params.Text("path"), "", to), nil
	case from == "" || !strings.Contains(old, from):
		return "", errors.New("the text to replace is not in the file")
	case all:
		return unified(r.Params.Text("path"), old, strings.ReplaceAll(old, from, to)), nil
	}
	return unified(r.Params.Text("path"), old, strings.Replace(old, from, to, 1)), nil
}

// current reads the target as it is now; a missing one is empty.
func (l *factsFinder) current(r *toolward.Request) (string, error) {
	resolved, err := l.places.Resolve(r.Call.WorkDir, r.Params.Text("path"))
	if err != nil {
		return "", err
	}
	if resolved.Kind == place.KindMissing {
		return "", nil
	}
	content, err := place.ReadFile(resolved, maxDiffFile)
	if err != nil {
		return "", err
	}
	data := content.Data
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", errors.New("the file is not text")
	}
	return string(data), nil
}

// unified shows the change from old to text.
func unified(path, old, text string) string {
	if old == text {
		return ""
	}
	d := display.NewDiff(maxDiff)
	d.File(path, path, old, text)
	return d.String()
}
