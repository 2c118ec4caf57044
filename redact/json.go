package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// JSON hides secrets in the string leaves of a JSON document: keys, numbers, order and white space stay byte
// for byte. A string under a telling key ("password") is judged as a value of that key. The error means that the
// document is not JSON; nothing is returned then, since nothing was hidden.
func (r *Redactor) JSON(document []byte) (clean []byte, found bool, err error) {
	if !json.Valid(document) {
		return nil, false, errors.New("redact: the document is not valid JSON")
	}
	var out bytes.Buffer
	last, name := 0, ""
	for i := 0; i < len(document); {
		if document[i] != '"' {
			if b := document[i]; b == ',' || b == '{' || b == '[' || b == '}' || b == ']' {
				name = ""
			}
			i++
			continue
		}
		end := stringEnd(document, i)
		raw := document[i:end]
		if isKey(document, end) {
			if name, err = unquote(raw); err != nil {
				return nil, false, err
			}
			i = end
			continue
		}
		text, err := unquote(raw)
		if err != nil {
			return nil, false, err
		}
		if cleanText, hit := r.leaf(name, text); hit {
			quoted, err := quote(cleanText)
			if err != nil {
				return nil, false, err
			}
			out.Write(document[last:i])
			out.Write(quoted)
			last, found = end, true
		}
		i = end
	}
	if !found {
		return document, false, nil
	}
	out.Write(document[last:])
	return out.Bytes(), true, nil
}

// leaf cleans one string. Under a telling key the pair is judged as if it stood in text.
func (r *Redactor) leaf(name, text string) (string, bool) {
	clean, found := r.Clean(text)
	if found || name == "" || text == "" || len(text) > longestGuess {
		return clean, found
	}
	pair := name + `: "` + strings.ReplaceAll(text, `"`, " ") + `"`
	for _, m := range scan(pair, true) {
		if m.Start >= len(name)+3 {
			return opening + m.Kind + "]", true
		}
	}
	return text, false
}

// stringEnd is the offset behind the string that begins at i of a valid document.
func stringEnd(document []byte, i int) int {
	for i++; document[i] != '"'; i++ {
		if document[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func isKey(document []byte, end int) bool {
	rest := bytes.TrimLeft(document[end:min(len(document), end+16)], " \t\r\n")
	if len(rest) == 0 {
		rest = bytes.TrimLeft(document[end:], " \t\r\n")
	}
	return len(rest) > 0 && rest[0] == ':'
}

func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("redact: %w", err)
	}
	return s, nil
}

// quote writes a string as JSON without the escapes for HTML.
func quote(s string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
