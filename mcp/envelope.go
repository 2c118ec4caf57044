package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxEnvelopeKeys is how many keys a message and its parameters may have each. MCP defines fewer than ten.
const maxEnvelopeKeys = 64

// envelopeFault finds a key that appears twice in a message or in its "params"; "" means none. JSON readers
// disagree about which of the two counts: a proxy or log in front of Toolward could see a call of "read" where
// Toolward sees "exec". Keys inside the arguments are the gateway's decoder's business. data is one valid JSON
// object.
func envelopeFault(data []byte) string {
	e := envelope{data: data}
	e.outer = e.outerSpace[:0]
	e.inner = e.innerSpace[:0]
	return e.scan()
}

// envelope walks a message once and remembers the keys of its two outer levels.
type envelope struct {
	data         []byte
	depth        int
	inParams     bool // inside the object that is the value of "params"
	nextIsParams bool // the last key of the message was "params"
	expectKey    bool
	outer, inner []string

	outerSpace, innerSpace [8]string // room for every usual message without an allocation
}

func (e *envelope) scan() string {
	for i := 0; i < len(e.data); i++ {
		switch e.data[i] {
		case '{':
			e.depth++
			e.expectKey = true
			if e.depth == 2 && e.nextIsParams {
				e.inParams = true
			}
		case '[':
			e.depth++
			e.expectKey = false
		case '}', ']':
			if e.depth == 2 {
				e.inParams = false
			}
			e.depth--
			e.expectKey = false
		case ',':
			e.expectKey = true
		case '"':
			end := stringEnd(e.data, i)
			if fault := e.string(e.data[i : end+1]); fault != "" {
				return fault
			}
			i = end
		}
	}
	return ""
}

// string looks at one string, which is a key where the walk expects one. Strings in arrays are never keys: no array
// is at one of the two levels.
func (e *envelope) string(quoted []byte) string {
	isKey := e.expectKey
	e.expectKey = false
	switch {
	case !isKey:
		return ""
	case e.depth == 1:
		key := keyText(quoted)
		e.nextIsParams = key == "params"
		return remember(&e.outer, key)
	case e.depth == 2 && e.inParams:
		return remember(&e.inner, keyText(quoted))
	}
	return ""
}

func remember(keys *[]string, key string) string {
	if len(*keys) == maxEnvelopeKeys {
		return fmt.Sprintf("a message and its params may have at most %d keys each", maxEnvelopeKeys)
	}
	for _, seen := range *keys {
		if seen == key {
			return fmt.Sprintf("key %q appears twice", key[:min(len(key), 64)])
		}
	}
	*keys = append(*keys, key)
	return ""
}

// stringEnd returns the index of the quote that closes the string opened at start.
func stringEnd(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data) - 1
}

// keyText undoes escapes: "n\u0061me" is the key "name" to every reader.
func keyText(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var key string
	if json.Unmarshal(quoted, &key) != nil {
		return string(quoted)
	}
	return key
}
