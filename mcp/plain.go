package mcp

import (
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// plainRequest reads a request or notification of the shape that nearly all have: version, id, method and params,
// no others, and nothing escaped. For every other message it returns nil, and the SDK's decoder, which takes two
// buffers of 32 KiB for each, has the word. data is one valid JSON object without duplicate keys.
func plainRequest(data []byte) *jsonrpc.Request {
	s := plainScanner{data: data}
	request := &jsonrpc.Request{}
	versioned := false
	s.skip('{')
	for s.pos < len(data) && data[s.pos] != '}' {
		key, ok := plainText(s.value())
		s.skip(':')
		value := s.value()
		switch {
		case !ok || s.tooDeep:
			return nil
		case key == "jsonrpc":
			versioned = string(value) == `"2.0"`
		case key == "id":
			request.ID, ok = plainID(value)
		case key == "method":
			request.Method, ok = plainText(value)
		case key == "params" && value[0] == '{':
			request.Params = json.RawMessage(value)
		default:
			return nil
		}
		if !ok {
			return nil
		}
		s.skip(',')
	}
	if !versioned || request.Method == "" {
		return nil
	}
	return request
}

// plainScanner walks over valid JSON.
type plainScanner struct {
	data    []byte
	pos     int
	tooDeep bool // deeper than plain messages are
}

// plainDepth is how deep the parameters of a plain message go. The SDK refuses some that are much deeper.
const plainDepth = 100

// skip passes white space, the character if it is there, and white space behind it.
func (s *plainScanner) skip(c byte) {
	for wanted := true; s.pos < len(s.data); s.pos++ {
		switch got := s.data[s.pos]; {
		case got == ' ' || got == '\t' || got == '\r' || got == '\n':
		case got == c && wanted:
			wanted = false
		default:
			return
		}
	}
}

// value returns one value and passes it.
func (s *plainScanner) value() []byte {
	start, depth := s.pos, 0
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			s.pos = stringEnd(s.data, s.pos)
		case '{', '[':
			depth++
			s.tooDeep = s.tooDeep || depth > plainDepth
			continue
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			continue
		default: // a number or a word
			for s.pos+1 < len(s.data) && isWord(s.data[s.pos+1]) {
				s.pos++
			}
		}
		if depth == 0 {
			s.pos++
			break
		}
	}
	return s.data[start:s.pos]
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == 'E' || c == '.' || c == '+' || c == '-'
}

// plainText is the text of a JSON string of printable ASCII without escapes.
func plainText(quoted []byte) (string, bool) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return "", false
	}
	text := quoted[1 : len(quoted)-1]
	for _, c := range text {
		if c < 0x20 || c > 0x7e || c == '\\' {
			return "", false
		}
	}
	return string(text), true
}

// plainID is an id that is a plain text or a whole number without a sign.
func plainID(value []byte) (jsonrpc.ID, bool) {
	if text, ok := plainText(value); ok {
		id, err := jsonrpc.MakeID(text)
		return id, err == nil
	}
	number, err := strconv.ParseUint(string(value), 10, 53) // what a float64 holds exactly, as the SDK reads it
	if err != nil {
		return jsonrpc.ID{}, false
	}
	id, err := jsonrpc.MakeID(float64(number))
	return id, err == nil
}
