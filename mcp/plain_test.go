package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"pgregory.net/rapid"
)

func TestPlainRequest(t *testing.T) {
	for _, test := range []struct {
		name, message string
		plain         bool
	}{
		{"call", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{"b":"}"}],"c":"\"}"}}}`, true},
		{"another order", `{"params":{"x":1},"method":"ping","id":"a-1","jsonrpc":"2.0"}`, true},
		{"white space", " {\n\t\"jsonrpc\" : \"2.0\" ,\r\n \"id\" : 5 , \"method\" : \"ping\" , \"params\" : { } } ", true},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, true},
		{"empty id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, true},
		{"deep, but not too deep", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}}`, true},

		{"response", `{"jsonrpc":"2.0","id":5,"result":{}}`, false},
		{"error", `{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"x"}}`, false},
		{"request with a result", `{"jsonrpc":"2.0","id":5,"method":"ping","result":{}}`, false},
		{"no version", `{"id":5,"method":"ping"}`, false},
		{"another version", `{"jsonrpc":"2.1","id":5,"method":"ping"}`, false},
		{"version as a number", `{"jsonrpc":2.0,"id":5,"method":"ping"}`, false},
		{"escaped key", `{"jsonrpc":"2.0","id":5,"m\u0065thod":"ping"}`, false},
		{"escaped method", `{"jsonrpc":"2.0","id":5,"method":"p\u0069ng"}`, false},
		{"method beyond ASCII", `{"jsonrpc":"2.0","id":5,"method":"ping\u00e9é"}`, false},
		{"no method", `{"jsonrpc":"2.0","id":5}`, false},
		{"empty method", `{"jsonrpc":"2.0","id":5,"method":""}`, false},
		{"method that is null", `{"jsonrpc":"2.0","id":5,"method":null}`, false},
		{"id that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, false},
		{"id below zero", `{"jsonrpc":"2.0","id":-5,"method":"ping"}`, false},
		{"id with a fraction", `{"jsonrpc":"2.0","id":5.0,"method":"ping"}`, false},
		{"id beyond a float", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, false},
		{"id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, false},
		{"params that are a list", `{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}`, false},
		{"params that are null", `{"jsonrpc":"2.0","id":5,"method":"ping","params":null}`, false},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, false},
		{"unknown key", `{"jsonrpc":"2.0","id":5,"method":"ping","x":1}`, false},
		{"nothing", `{}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := plainRequest([]byte(test.message)); (got != nil) != test.plain {
				t.Fatalf("got %+v", got)
			}
			compareWithSDK(t, test.message)
		})
	}
}

// Whatever the short way reads, the SDK reads alike.
func TestPlainRequestIsTheSDKs(t *testing.T) {
	space := rapid.StringMatching(`[ \t\r\n]{0,2}`)
	text := rapid.OneOf(rapid.StringMatching(`[a-z/\-]{0,8}`), rapid.StringN(0, 6, -1), rapid.SampledFrom([]string{"2.0", "id", "jsonrpc"}))
	quoted := rapid.Map(text, func(s string) string { b, _ := json.Marshal(s); return string(b) })
	scalar := rapid.OneOf(quoted, rapid.SampledFrom([]string{
		"0", "5", "-0", "-1", "1e3", "1.5", "9007199254740991", "9007199254740992", "9007199254740993", "18446744073709551616",
		"null", "true", "false", `"2.0"`, `"\u0032.0"`, `"}"`, `"\\"`, `"\""`,
	}))
	object := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString("{")
		for i, n := 0, rapid.IntRange(0, 3).Draw(t, "fields"); i < n; i++ {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(quoted.Draw(t, "key") + space.Draw(t, "space") + ":" + scalar.Draw(t, "value"))
		}
		return b.String() + "}"
	})
	value := rapid.OneOf(scalar, object, rapid.Map(rapid.SliceOfN(rapid.OneOf(scalar, object), 0, 3), func(s []string) string {
		return "[" + strings.Join(s, ",") + "]"
	}))
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"jsonrpc", "id", "method", "params"}
		if rapid.IntRange(0, 4).Draw(t, "strange") == 0 {
			keys[rapid.IntRange(0, 3).Draw(t, "place")] = rapid.SampledFrom([]string{"result", "error", "other", "Method", "ID"}).Draw(t, "key")
		}
		keys = rapid.Permutation(keys).Draw(t, "keys")[:rapid.IntRange(2, 4).Draw(t, "count")]
		usual := map[string]*rapid.Generator[string]{
			"jsonrpc": rapid.Just(`"2.0"`), "id": rapid.SampledFrom([]string{"7", `"x"`}), "method": rapid.Just(`"tools/call"`), "params": object,
		}
		var fields []string
		for _, key := range keys {
			from := value
			if common := usual[key]; common != nil && rapid.IntRange(0, 9).Draw(t, "usual") > 0 {
				from = common
			}
			fields = append(fields, space.Draw(t, "space")+`"`+key+`"`+space.Draw(t, "space")+":"+space.Draw(t, "space")+from.Draw(t, key)+space.Draw(t, "space"))
		}
		message := "{" + strings.Join(fields, ",") + "}"
		if !json.Valid([]byte(message)) {
			t.Fatalf("the test is wrong: %s", message)
		}
		compareWithSDK(t, message)
	})
}

func compareWithSDK(t rapid.TB, message string) {
	t.Helper()
	got := plainRequest([]byte(message))
	if got == nil {
		return
	}
	decoded, err := jsonrpc.DecodeMessage([]byte(message))
	if err != nil {
		t.Fatalf("the SDK refuses %s: %v", message, err)
	}
	want, ok := decoded.(*jsonrpc.Request)
	if !ok {
		t.Fatalf("to the SDK %s is a %T", message, decoded)
	}
	if diff := cmp.Diff(want.ID.Raw(), got.ID.Raw()); diff != "" || want.Method != got.Method || string(want.Params) != string(got.Params) {
		t.Fatalf("%s\nSDK  %+v\nours %+v", message, want, got)
	}
}

func FuzzPlainRequest(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,{"b":"}"}]}}}`)
	f.Add(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	f.Fuzz(func(t *testing.T, message string) {
		data := []byte(strings.TrimSpace(message))
		if !json.Valid(data) || data[0] != '{' || envelopeFault(data) != "" {
			return
		}
		compareWithSDK(t, string(data))
	})
}
