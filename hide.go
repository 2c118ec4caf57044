package toolward

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Hider finds secrets in what goes to agents, and hides them.
type Hider interface {
	Clean(text string) (clean string, found bool)
	JSON(document []byte) (clean []byte, found bool, err error)
}

// clean hides the secrets of a result, last of all, so that no plug-in brings one back. A tool that reads files, runs commands or
// asks another server knows of no secret in what it found, and a model repeats what it has seen.
func (g *Gateway) clean(result Result) Result {
	if g.hider == nil {
		return result
	}
	content := make([]Content, len(result.Content))
	for i, c := range result.Content {
		c.Text, _ = g.hider.Clean(c.Text)
		if c.isText() {
			if clean, found := g.hider.Clean(string(c.Data)); found {
				c.Data = []byte(clean)
			}
		}
		content[i] = c
	}
	result.Content = content
	if len(result.Structured) > 0 {
		structured, found, err := g.hider.JSON(result.Structured)
		switch {
		case err != nil: // nobody can read it, so nobody knows what is in it
			result.Structured = nil
		case found:
			result.Structured = json.RawMessage(structured)
		}
	}
	return result
}

// isText reports whether the bytes of a block are text. Secrets in pictures are not looked for: a change would only break them.
func (c Content) isText() bool {
	kind, _, _ := strings.Cut(c.MIME, "/")
	return len(c.Data) > 0 && kind != "image" && kind != "audio" && kind != "video" && utf8.Valid(c.Data)
}

// cleanError is an error whose text holds no secret; what it is made of can still be asked for.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

// cleanFailure hides the secrets in what a tool says of its failure, which clients show to the model.
func (g *Gateway) cleanFailure(err error) error {
	if err == nil || g.hider == nil {
		return err
	}
	if text, found := g.hider.Clean(err.Error()); found {
		return &cleanError{text, err}
	}
	return err
}
