package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

func TestStdioHostileLines(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`
	cases := []struct {
		name, line string
		code       int
		id         string
	}{
		{"no JSON", `hello`, -32700, "null"},
		{"half a message", `{"jsonrpc":"2.0","id":5`, -32700, "null"},
		{"NUL", "\x00", -32700, "null"},
		{"two messages in a line", call + call, -32700, "null"},
		{"text", `"x"`, -32600, "null"},
		{"null", `null`, -32600, "null"},
		{"batch", "[" + call + "]", -32600, "null"},
		{"empty batch", "[]", -32600, "null"},
		{"empty object", "{}", -32600, "null"},
		{"no version", `{"id":5,"method":"ping"}`, -32600, "5"},
		{"old version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600, "5"},
		{"object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600, "null"},
		{"number as method", `{"jsonrpc":"2.0","id":"a","method":5}`, -32600, `"a"`},
		{"too long", `{"jsonrpc":"2.0","id":5,"method":"` + strings.Repeat("x", 5<<20) + `"}`, -32600, "null"},
		{"too deep", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, -32600, "5"},
		{"much too deep", strings.Repeat("[", 1<<20), -32700, "null"},
		{"duplicate method", `{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}`, -32600, "5"},
		{"duplicate name", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","n\u0061me":"act","arguments":{}}}`, -32600, "5"},
		{"too many keys", `{"jsonrpc":"2.0","id":5,"method":"ping"` + manyKeys(100) + `}`, -32600, "5"},
		{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"tools/explode","params":{}}`, -32601, "5"},
		{"name is a number", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":5}}`, -32602, "5"},
		{"params is a list", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}`, -32602, "5"},
		{"params is null", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":null}`, -32600, "5"},
		{"no params", `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, -32600, "5"},
	}
	w := newWorld(t)
	raw := newRaw(t, w.stdio(t, coder))
	raw.initialize(version20251125)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			go raw.send(c.line) // the server may answer before it has read all of it
			a := raw.receive()
			if a.Error == nil || a.Error.Code != c.code {
				t.Fatalf("got %.300s, want error %d", a.line, c.code)
			}
			if id := string(a.ID); id != c.id && (id != "" || c.id != "null") {
				t.Errorf("id %s, want %s", id, c.id)
			}
			if len(a.line) > 2000 && !strings.HasPrefix(c.name, "params") {
				t.Errorf("answer of %d bytes", len(a.line))
			}
		})
	}
	if n := len(w.Auditor.Decisions()); n != 0 {
		t.Errorf("%d calls reached the gateway", n)
	}
	for _, complaint := range []string{string(tooLong(1).response()), `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`} {
		raw.send(complaint) // is not answered, or two servers at each other's ends would never stop
	}
	raw.send("\r\n\n" + call + "\r") // empty lines and Windows line ends are harmless
	if a := raw.receive(); !strings.Contains(string(a.Result), `"x"`) {
		t.Errorf("the stream afterwards: %s", a.line)
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k`)
		b.WriteString(strings.Repeat("x", i))
		b.WriteString(`":1`)
	}
	return b.String()
}

func TestCallBeforeInitialize(t *testing.T) {
	w := newWorld(t)
	raw := newRaw(t, w.stdio(t, coder))
	raw.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}`)
	if a := raw.receive(); a.Error == nil {
		t.Errorf("got %s", a.line)
	}
	if n := len(w.Auditor.Decisions()); n != 0 {
		t.Errorf("%d calls reached the gateway", n)
	}
}

func TestSameIDTwice(t *testing.T) {
	w := newWorld(t)
	raw := newRaw(t, w.stdio(t, coder))
	raw.initialize(version20251125)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{}}}`
	raw.send(call)
	w.people.until(t, "a1", func(*entry) bool { return true })
	raw.send(call) // dropped: an answer to it could be taken for the first call's
	raw.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if a := raw.receive(); string(a.ID) != "2" {
		t.Errorf("got %s, want the answer to the ping", a.line)
	}
	w.people.decide(t, "a1", toolward.AllowOnce)
	if a := raw.receive(); string(a.ID) != "1" || a.Result == nil {
		t.Errorf("got %s", a.line)
	}
	w.ranOnce(t)
}

func TestOversizedArgumentsReachTheGate(t *testing.T) {
	w := newWorld(t)
	raw := newRaw(t, w.stdio(t, coder))
	raw.initialize(version20251125)
	arguments := `{"text":"` + strings.Repeat("x", 2<<20) + `"}` // above the gateway's limit, below that of a message
	go raw.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing","arguments":` + arguments + `}}`)
	if a := raw.receive(); a.Result == nil {
		t.Fatalf("got %.300s", a.line)
	}
	if got := len(w.Auditor.Decisions()[0].Call.Arguments); got != len(arguments) {
		t.Errorf("the gateway got %d bytes, want %d", got, len(arguments))
	}
}

func TestEnvelopeFault(t *testing.T) {
	cases := []struct {
		name, data string
		fault      bool
	}{
		{"plain", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","arguments":{"a":1,"b":[{"a":1}]}}}`, false},
		{"same key at different places", `{"id":1,"params":{"id":1,"arguments":{"id":1}},"result":{"id":1,"x":{"id":2}}}`, false},
		{"duplicates inside arguments are not ours", `{"params":{"arguments":{"a":1,"a":2}}}`, false},
		{"duplicates inside other values are not ours", `{"result":{"a":1,"a":2}}`, false},
		{"values that look like keys", `{"a":"b","b":"a","params":{"x":["x","x"],"y":"x"}}`, false},
		{"keys in text", `{"a":"\"a\":1,\"a\":2","b":"{\"b\""}`, false},
		{"outer", `{"a":1,"b":2,"a":3}`, true},
		{"outer by escape", `{"method":1,"m\u0065thod":2}`, true},
		{"params twice", `{"params":{},"params":{}}`, true},
		{"in params", `{"params":{"name":1,"name":2}}`, true},
		{"in params after nested values", `{"params":{"name":{"x":[1,{"y":2}]},"z":[],"name":2}}`, true},
		{"in params that comes late", `{"x":{"a":1,"a":2},"params":{"a":[{}],"a":1}}`, true},
		{"too many", `{"a":1` + manyKeys(64) + `}`, true},
		{"just enough", `{"a":1` + manyKeys(63) + `}`, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !json.Valid([]byte(c.data)) {
				t.Fatal("the case is not JSON")
			}
			if fault := envelopeFault([]byte(c.data)); (fault != "") != c.fault {
				t.Errorf("fault %q, want one: %v", fault, c.fault)
			}
		})
	}
}

// FuzzDecodeMessage looks for messages that crash the reader, or that it takes although a key appears twice.
func FuzzDecodeMessage(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":1,"a":2}}}`,
		`{"jsonrpc":"2.0","id":1,"m\u0065thod":"a","method":"b"}`, `[]`, `{`, `{"id":1e99}`, "{\"a\":\"\xff\"}", `{"":{"":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		message, bad := decodeMessage(data)
		if (message == nil) == (bad == nil) {
			t.Fatalf("%q: message %v, fault %v", data, message, bad)
		}
		if bad != nil {
			if !json.Valid(bad.response()) {
				t.Fatalf("%q: the answer is no JSON: %s", data, bad.response())
			}
			return
		}
		if key := duplicate(t, data); key != "" {
			t.Fatalf("%q is taken with two keys %q", data, key)
		}
	})
}

// duplicate finds a doubled outer key with encoding/json, slowly.
func duplicate(t *testing.T, data []byte) string {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	seen := map[string]bool{}
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		if seen[key.(string)] {
			return key.(string)
		}
		seen[key.(string)] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return ""
}
