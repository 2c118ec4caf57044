package builtin

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/term"

	"github.com/toolward/toolward/internal/gatetest"
)

// TestKeysVectors runs the vectors of typing and pasting. That nothing is sent is asserted, not how it is called.
func TestKeysVectors(t *testing.T) {
	gatetest.Play(t, "exec.json", "keys", gatetest.Vectors(t, "exec.json", "keys")["keys"], func(t *testing.T, c gatetest.Case) {
		gatetest.CompareAsserted(t, c, keysVector(t, c))
	})
}

func keysVector(t *testing.T, c gatetest.Case) map[string]any {
	var in struct {
		Keys, Hex []string
		Literal   string
		Paste     *string
		Bracketed *bool
	}
	gatetest.Decode(t, c.Input, &in)
	var want struct {
		Error, Hex json.RawMessage
		Warnings   int
	}
	gatetest.Decode(t, c.Want, &want)
	var (
		sent     []byte
		warnings []string
		err      error
	)
	if in.Paste != nil {
		sent, err = encodePaste(*in.Paste, in.Bracketed == nil || *in.Bracketed)
	} else {
		sent, warnings, err = keySequence{literal: in.Literal, hex: in.Hex, keys: in.Keys}.encode()
	}
	if err != nil {
		return map[string]any{"error": want.Error, "warnings": len(warnings)}
	}
	return map[string]any{"hex": hex.EncodeToString(sent), "warnings": len(warnings)}
}

func TestKeyCodes(t *testing.T) {
	for token, want := range map[string]string{
		// Names, in any case and with blanks around.
		"RETURN": "\r", "tab": "\t", "Esc": "\x1b", " Space ": " ", "BSpace": "\x7f", "btab": "\x1b[Z",
		"Down": "\x1b[B", "Home": "\x1b[1~", "end": "\x1b[4~", "PPage": "\x1b[5~", "npage": "\x1b[6~", "IC": "\x1b[2~", "DC": "\x1b[3~",
		"F1": "\x1bOP", "F4": "\x1bOS", "F10": "\x1b[21~", "F12": "\x1b[24~", "KPEnter": "\x1bOM", "KP*": "\x1bOj", "KP0": "\x1bOp",
		// Modifiers stack, in any order.
		"C-c": "\x03", "c-C": "\x03", "C-@": "\x00", "C-?": "\x7f", "C-[": "\x1b", "^?": "\x7f", "^_": "\x1f",
		"C-S-Home": "\x1b[1;6~", "S-C-Home": "\x1b[1;6~", "C-M-S-Delete": "\x1b[3;8~", "S-Left": "\x1b[1;2D",
		"C-F5": "\x1b[15;5~", "M-F1": "\x1b[1;3P",
		"C-M-x": "\x1b\x18", "M-S-x": "\x1bX", "M-Enter": "\x1b\r", "C-Space": "\x00", "M-S-Tab": "\x1b\x1b[Z",
		"M--": "\x1b-", "S-é": "É", "S-A": "A",
		// What is no key is text.
		"ls -la ": "ls -la ", " ": " ", "C-": "C-", "^1": "^1", "^": "^", "X-a": "X-a", "": "", "F13": "F13", "ü": "ü",
	} {
		if got, warning := keyCode(token); got != want || warning != "" {
			t.Errorf("%q: got %q, want %q; warning %q", token, got, want, warning)
		}
	}
	for token, want := range map[string]string{
		"C-Foo": "Foo", "M-F13": "F13", "C-Enter": "\r", "S-Escape": "\x1b", "C-1": "1", "C-é": "é", "S-1": "1", "C-M-Tab": "\x1b\t", "C-KP5": "\x1bOu",
	} {
		if got, warning := keyCode(token); got != want || warning == "" {
			t.Errorf("%q: got %q, want %q with a warning", token, got, want)
		}
	}
}

func TestKeySequence(t *testing.T) {
	got, warnings, err := keySequence{literal: "é", hex: []string{"ff", "0X1b", " 7 ", "100", "g", "", "0x", "+1", "-1"}, keys: []string{"Up"}}.encode()
	if err != nil || string(got) != "é\xff\x1b\x07\x1b[A" || len(warnings) != 6 {
		t.Errorf("%q %q %v", got, warnings, err)
	}
	if _, warnings, err := (keySequence{hex: []string{"zz"}, keys: []string{""}}).encode(); !errors.Is(err, errNoKeys) || len(warnings) != 1 {
		t.Errorf("%q %v", warnings, err)
	}
}

func TestPaste(t *testing.T) {
	for _, c := range []struct {
		text      string
		bracketed bool
		want      string
		err       error
	}{
		{"a\r\nb", true, "\x1b[200~a\r\nb\x1b[201~", nil},
		{"a\x1b[201~b", false, "a\x1b[201~b", nil},
		{"a\x1b[201~rm -rf .\r", true, "", errEndPaste},
		{"a\u009b201~rm -rf .\r", true, "", errEndPaste},
		{"", true, "", errNoPaste},
		{"", false, "", errNoPaste},
	} {
		if got, err := encodePaste(c.text, c.bracketed); string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q, %v: got %q, %v", c.text, c.bracketed, got, err)
		}
	}
}

// shows waits until a command has printed a text.
func (w *world) shows(id, text string) {
	w.Helper()
	s := w.box.sessions.byID[id]
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.output.last(1<<20), text); runtime.Gosched() {
		if time.Now().After(deadline) {
			w.Fatalf("%q does not come, only %q", text, s.output.last(1<<20))
		}
	}
}

// TestKeysReachAProgram: a program on a terminal reads the very bytes, and the terminal itself takes ^C.
func TestKeysReachAProgram(t *testing.T) {
	needProc(t)
	w := newWorld(t)
	id := w.background("stty raw -echo; echo ready; cat -v", args{"pty": true})
	w.shows(id, "ready")
	result := w.run("process", args{
		"action": "send-keys", "sessionId": id, "literal": "ls", "hex": []any{"03", "xx"}, "keys": []any{"C-Up", "Foo", "C-Bar", "Enter"},
	})
	w.shows(id, "ls^C^[[1;5AFooBar^M")
	if d := details[inputDetails](t, result); d.Bytes != 16 || len(d.Warnings) != 2 || d.Status != "running" {
		t.Errorf("%+v", d)
	}
	if got := text(result); !strings.Contains(got, `Warning: "xx" is not a byte`) {
		t.Errorf("got %q", got)
	}
	w.ok("process", args{"action": "paste", "sessionId": id, "text": "a\tb"})
	w.shows(id, "^[[200~a\tb^[[201~")
	w.ok("process", args{"action": "paste", "sessionId": id, "text": "plain", "bracketed": false})
	w.shows(id, "201~plain")
	w.ok("process", args{"action": "kill", "sessionId": id})
	w.fails("process", args{"action": "send-keys", "sessionId": id, "keys": []any{"Enter"}}, "has ended")
	w.fails("process", args{"action": "paste", "sessionId": id, "text": "x"}, "has ended")

	id = w.background("echo ready; exec cat", args{"pty": true})
	w.shows(id, "ready")
	w.ok("process", args{"action": "send-keys", "sessionId": id, "keys": []any{"C-c"}})
	d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id, "timeout": 60_000}))
	if d.Status != "failed" || d.Signal != "SIGINT" {
		t.Errorf("%+v", d)
	}
}

// TestPasteIsNotRun: a shell shows a bracketed paste as one text to edit; typed, its lines run.
func TestPasteIsNotRun(t *testing.T) {
	needProc(t)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	w := newWorld(t)
	id := w.background("PS1='READY> ' exec bash --norc --noprofile -i", args{"pty": true})
	w.shows(id, "READY> ")
	w.ok("process", args{"action": "paste", "sessionId": id, "text": "touch pasted\ntouch pasted\n"})
	w.shows(id, "pasted") // ^C takes away what the shell has not read
	w.ok("process", args{"action": "send-keys", "sessionId": id, "keys": []any{"C-c"}})
	w.shows(id, "^C")
	w.ok("process", args{"action": "paste", "sessionId": id, "text": "touch typed\n", "bracketed": false})
	w.ok("process", args{"action": "send-keys", "sessionId": id, "literal": "exit", "keys": []any{"Enter"}})
	d := details[pollDetails](t, w.run("process", args{"action": "poll", "sessionId": id, "timeout": 60_000}))
	if d.Status != "completed" {
		t.Errorf("%+v", d)
	}
	w.tidy("ws", "typed")
}

func TestFactsOfKeys(t *testing.T) {
	w := newWorld(t)
	id := w.background("cat")
	// A text typed key by key, with cursor keys between, is found whole by those who look for secrets.
	r := w.facts("process", args{"action": "send-keys", "sessionId": id, "keys": []any{"s", "Left", "k", "-", "1", "Enter"}, "hex": []any{"q"}})
	want := []string{"s\x1b[Dk-1\r", "sk-1\r"}
	if diff := cmp.Diff(want, r.Facts.Outbound); diff != "" || !r.Facts.Mutates || r.Facts.Action != "send-keys" || len(r.Facts.Bound) != 1 {
		t.Errorf("%+v\n%s", r.Facts, diff)
	}
	shown, err := r.Tool.Diff(t.Context(), r)
	if err != nil || !strings.HasSuffix(shown, "Input:\n+\"s\\x1b[Dk-1\\r\"\nNote: \"q\" is not a byte in hexadecimal digits; it is skipped\n") {
		t.Errorf("%v %q", err, shown)
	}
	// What a screen would hide or obey is seen as keys, and cannot be confused with text that looks quoted.
	for data, want := range map[string]string{
		"ls\n": "+ls\n", "rm x\rls": "+\"rm x\\rls\"\n", `"a"`: "+\"\\\"a\\\"\"\n", "a\u202eb\n": "+\"a\\u202eb\"\n", "ä\tb\nc": "+ä\tb\n+c\n",
	} {
		r := w.facts("process", args{"action": "write", "sessionId": id, "data": data})
		if got, err := r.Tool.Diff(t.Context(), r); err != nil || !strings.HasSuffix(got, "Input:\n"+want) {
			t.Errorf("%q: %v %q", data, err, got)
		}
	}
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"action": "send-keys"}, "keys: no key is left to send; give literal, hex or keys"},
		{args{"action": "send-keys", "hex": []any{"q"}}, `keys: "q" is not a byte in hexadecimal digits; it is skipped; no key is left`},
		{args{"action": "send-keys", "keys": []any{strings.Repeat("x", maxInput+1)}}, "keys: is longer than 65536 bytes"},
		{args{"action": "paste"}, "text: there is nothing to paste"},
		{args{"action": "paste", "text": "a\x1b[201~b"}, "text: contains the mark that ends a bracketed paste"},
		{args{"action": "paste", "text": strings.Repeat("x", maxInput)}, "text: is longer than 65536 bytes"},
	} {
		c.a["sessionId"] = id
		if _, err := w.request("process", c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// copied tells how many bytes were copied to it.
type copied chan int

func (c copied) Write(p []byte) (int, error) {
	c <- len(p)
	return len(p), nil
}

// TestCursorQueries: a program gets its answers whole, even if a question comes in pieces and long after an input.
func TestCursorQueries(t *testing.T) {
	needProc(t)
	ours, theirs, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := term.MakeRaw(int(theirs.Fd())); err != nil {
		t.Fatal(err)
	}
	program, err := pollable(theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	defer program.Close()
	// As an input of some time ago has left it.
	if err := ours.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	read, end := make(copied), make(chan struct{})
	go func() { defer close(end); copyTerminal(read, ours) }()
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"\x1b[6n"}, "\x1b[1;1R"},
		{[]string{"\x1b[?6n"}, "\x1b[?1;1R"},
		{[]string{"a\x1b", "[", "?", "6n"}, "\x1b[?1;1R"},
		{[]string{"\x1b[6", "n\x1b[6n"}, "\x1b[1;1R\x1b[1;1R"},
		{[]string{"\x1b[6\x1b[6", "n"}, "\x1b[1;1R"},
	} {
		for _, piece := range c.pieces {
			if _, err := program.WriteString(piece); err != nil {
				t.Fatal(err)
			}
			for n := 0; n < len(piece); {
				n += <-read
			}
		}
		got := make([]byte, len(c.want))
		if err := program.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(program, got); err != nil || string(got) != c.want {
			t.Errorf("%q: %q, %v", c.pieces, got, err)
		}
	}
	go func() {
		for range read {
		}
	}()
	ours.Close()
	<-end
	close(read)
}
