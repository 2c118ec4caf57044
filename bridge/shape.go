package bridge

import (
	"encoding/json"
	"errors"
	"strings"
)

// rewriteStrings copies a JSON text and changes its string values; keys, numbers, order and spacing stay as they
// are. A client takes a replaced result only if it has exactly the shape of its own. change gets the key that the
// value belongs to ("" in arrays it is that of the array) and says whether it changed anything.
func rewriteStrings(raw []byte, change func(key, value string) (string, bool)) (out []byte, changed bool, err error) {
	if !json.Valid(raw) {
		return nil, false, errors.New("not JSON")
	}
	w := rewriter{raw: raw, change: change, out: make([]byte, 0, len(raw))}
	w.value("")
	return w.out, w.changed, w.err
}

// rewriter walks over valid JSON.
type rewriter struct {
	raw     []byte
	at      int
	out     []byte
	change  func(key, value string) (string, bool)
	changed bool
	err     error
}

// value copies one value.
func (w *rewriter) value(key string) {
	w.space()
	switch w.raw[w.at] {
	case '{':
		w.container('}', func() {
			name := w.token()
			w.out = append(w.out, name...)
			w.space()
			w.copyByte() // ':'
			w.value(w.unquote(name))
		})
	case '[':
		w.container(']', func() { w.value(key) })
	case '"':
		w.text(key)
	default:
		start := w.at
		for w.at < len(w.raw) && !strings.ContainsRune(",]} \t\r\n", rune(w.raw[w.at])) {
			w.at++
		}
		w.out = append(w.out, w.raw[start:w.at]...)
	}
	w.space()
}

func (w *rewriter) container(end byte, element func()) {
	w.copyByte()
	for w.space(); w.raw[w.at] != end; w.space() {
		if w.raw[w.at] == ',' {
			w.copyByte()
			w.space()
		}
		element()
	}
	w.copyByte()
}

func (w *rewriter) text(key string) {
	token := w.token()
	before := w.unquote(token)
	after, changed := w.change(key, before)
	if !changed {
		w.out = append(w.out, token...)
		return
	}
	quoted, err := json.Marshal(after)
	if err != nil {
		w.err = err
		return
	}
	w.out = append(w.out, quoted...)
	w.changed = true
}

// token returns the string token at the present place and goes behind it.
func (w *rewriter) token() []byte {
	start := w.at
	for w.at++; w.raw[w.at] != '"'; w.at++ {
		if w.raw[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.raw[start:w.at]
}

func (w *rewriter) unquote(token []byte) string {
	var s string
	if err := json.Unmarshal(token, &s); err != nil {
		w.err = err
	}
	return s
}

func (w *rewriter) space() {
	for w.at < len(w.raw) && strings.IndexByte(" \t\r\n", w.raw[w.at]) >= 0 {
		w.copyByte()
	}
}

func (w *rewriter) copyByte() {
	w.out = append(w.out, w.raw[w.at])
	w.at++
}
