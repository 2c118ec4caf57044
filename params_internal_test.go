package toolward

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextIsWrittenAsRFC8785Does(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", `""`},
		{"plain", "src/main.go", `"src/main.go"`},
		{"both that must", `a"b\c`, `"a\"b\\c"`},
		{"short escapes", "\b\t\n\f\r", `"\b\t\n\f\r"`},
		{"other control characters", "\x00\x1f", `"\u0000\u001f"`},
		{"what encoding/json escapes for no need", "<&>\u2028\u2029\x7f", "\"<&>\u2028\u2029\x7f\""},
		{"beyond ASCII", "é\U0001F600", "\"é\U0001F600\""},
		{"the replacement character itself", "\ufffd", "\"\ufffd\""},
		{"bytes that are no text", "a\xffb\xc3", "\"a\ufffdb\ufffd\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := string(appendText(nil, test.text)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		var back string
		if err := json.Unmarshal(appendText(nil, text), &back); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(string([]rune(text)), "\ufffd"); back != want {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}
