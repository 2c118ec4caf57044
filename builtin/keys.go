package builtin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keySequence is what send-keys sends, in this order: text as it is, single bytes, keys by name.
type keySequence struct {
	literal string
	hex     []string // bytes of one or two hexadecimal digits, with or without 0x
	keys    []string // such as "Enter", "C-c", "M-Up", "^D"
}

const (
	escape       = "\x1b"
	beginPaste   = escape + "[200~"
	endPaste     = escape + "[201~"
	endPasteByC1 = "\u009b201~" // the same with the one-character form of ESC [
	backTab      = escape + "[Z"
)

var (
	errNoKeys   = errors.New("no key is left to send")
	errNoPaste  = errors.New("there is nothing to paste")
	errEndPaste = errors.New("contains the mark that ends a bracketed paste: the program would take what follows as typed")
)

// encode returns the bytes that a terminal sends for the keys, and a warning for everything that is not sent as
// asked: bytes that are none, modifiers that a key does not take. It fails if nothing is left to send.
func (k keySequence) encode() (input []byte, warnings []string, err error) {
	input = append(input, k.literal...)
	for _, digits := range k.hex {
		value, ok := hexByte(digits)
		if !ok {
			warnings = append(warnings, fmt.Sprintf("%s is not a byte in hexadecimal digits; it is skipped", quoteShort(digits)))
			continue
		}
		input = append(input, value)
	}
	for _, token := range k.keys {
		code, warning := keyCode(token)
		input = append(input, code...)
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	if len(input) == 0 {
		err = errNoKeys
	}
	return input, warnings, err
}

func hexByte(digits string) (byte, bool) {
	digits = strings.ToLower(strings.TrimSpace(digits))
	digits = strings.TrimPrefix(digits, "0x")
	if len(digits) > 2 {
		return 0, false // "0003" may be meant as two bytes
	}
	value, err := strconv.ParseUint(digits, 16, 8)
	return byte(value), err == nil
}

// encodePaste returns the bytes of a pasted text. In brackets a program can tell it from typed keys and does not run
// it line by line.
func encodePaste(text string, bracketed bool) ([]byte, error) {
	switch {
	case text == "":
		return nil, errNoPaste
	case !bracketed:
		return []byte(text), nil
	case strings.Contains(text, endPaste) || strings.Contains(text, endPasteByC1):
		// Paste injection: a text that closes the brackets itself goes on as keys, and may end in Enter.
		return nil, errEndPaste
	}
	return []byte(beginPaste + text + endPaste), nil
}

// modifiers are the keys held down with another one.
type modifiers struct{ ctrl, alt, shift bool }

func (m modifiers) any() bool { return m.ctrl || m.alt || m.shift }

// xterm is the number that stands for the modifiers in the sequences of xterm.
func (m modifiers) xterm() int {
	n := 1
	if m.shift {
		n++
	}
	if m.alt {
		n += 2
	}
	if m.ctrl {
		n += 4
	}
	return n
}

// keyCode returns what a terminal sends for one key token. A name that is none is a text to type.
func keyCode(token string) (code, warning string) {
	name := strings.TrimSpace(token)
	if char, ok := strings.CutPrefix(name, "^"); ok && utf8.RuneCountInString(char) == 1 {
		if code, ok := controlCode(char); ok {
			return code, ""
		}
	}
	held, base := cutModifiers(name)
	if code, ok := navigationKeys[strings.ToLower(base)]; ok {
		return code.with(held), ""
	}
	if code, ok := plainKeys[strings.ToLower(base)]; ok {
		return modifyPlain(code, base, held)
	}
	switch {
	case !held.any():
		return token, ""
	case utf8.RuneCountInString(base) == 1:
		return modifyCharacter(base, held)
	}
	return base, fmt.Sprintf("%s is not a key that takes modifiers; it is typed as text", quoteShort(base))
}

// cutModifiers takes C-, M- and S- from the beginning of a key token, in any order and case.
func cutModifiers(name string) (held modifiers, base string) {
	for len(name) > 2 && name[1] == '-' {
		switch name[0] {
		case 'C', 'c':
			held.ctrl = true
		case 'M', 'm':
			held.alt = true
		case 'S', 's':
			held.shift = true
		default:
			return held, name
		}
		name = name[2:]
	}
	return held, name
}

// modifyPlain adds modifiers to a key that has one code only: alt is sent as ESC before it.
func modifyPlain(code, name string, held modifiers) (modified, warning string) {
	if code == "\t" && held.shift {
		code, held.shift = backTab, false
	}
	if code == " " && held.ctrl {
		code, held.ctrl = "\x00", false
	}
	if held.ctrl || held.shift {
		warning = fmt.Sprintf("%s has no form with these modifiers; it is sent without", quoteShort(name))
	}
	if held.alt {
		code = escape + code
	}
	return code, warning
}

func modifyCharacter(char string, held modifiers) (modified, warning string) {
	if held.shift {
		upper := strings.ToUpper(char)
		if r, _ := utf8.DecodeRuneInString(char); upper == char && !unicode.IsUpper(r) {
			warning = fmt.Sprintf("what shift makes of %s depends on the keyboard; it is sent without", quoteShort(char))
		}
		char = upper
	}
	if held.ctrl {
		if code, ok := controlCode(char); ok {
			char = code
		} else {
			warning = fmt.Sprintf("there is no control character for %s; it is sent without", quoteShort(char))
		}
	}
	if held.alt {
		char = escape + char
	}
	return char, warning
}

// controlCode is the control character of a key: the letters, @ [ \ ] ^ _ and ?.
func controlCode(char string) (string, bool) {
	if char == "?" {
		return "\x7f", true
	}
	if char = strings.ToUpper(char); len(char) == 1 && char[0] >= '@' && char[0] <= '_' {
		return string(rune(char[0] & 0x1f)), true
	}
	return "", false
}

// plainKeys are the keys with one code each.
var plainKeys = map[string]string{
	"enter": "\r", "return": "\r", "tab": "\t", "btab": backTab, "escape": escape, "esc": escape, "space": " ",
	"bspace": "\x7f", "backspace": "\x7f",
	// The keypad as in application mode.
	"kp/": escape + "Oo", "kp*": escape + "Oj", "kp-": escape + "Om", "kp+": escape + "Ok", "kp.": escape + "On",
	"kpenter": escape + "OM", "kp0": escape + "Op", "kp1": escape + "Oq", "kp2": escape + "Or", "kp3": escape + "Os",
	"kp4": escape + "Ot", "kp5": escape + "Ou", "kp6": escape + "Ov", "kp7": escape + "Ow", "kp8": escape + "Ox", "kp9": escape + "Oy",
}

// navigationKey is a key whose code has a place for modifiers.
type navigationKey struct {
	introducer string // "[" or "O" behind ESC; with modifiers always "["
	number     string // may be ""
	final      string
}

func (k navigationKey) with(held modifiers) string {
	if !held.any() {
		return escape + k.introducer + k.number + k.final
	}
	number := k.number
	if number == "" {
		number = "1"
	}
	return escape + "[" + number + ";" + strconv.Itoa(held.xterm()) + k.final
}

func tilde(number string) navigationKey { return navigationKey{"[", number, "~"} }

// navigationKeys are the cursor, editing and function keys as xterm sends them.
var navigationKeys = map[string]navigationKey{
	"up": {"[", "", "A"}, "down": {"[", "", "B"}, "right": {"[", "", "C"}, "left": {"[", "", "D"},
	"home": tilde("1"), "end": tilde("4"),
	"pageup": tilde("5"), "pgup": tilde("5"), "ppage": tilde("5"),
	"pagedown": tilde("6"), "pgdn": tilde("6"), "npage": tilde("6"),
	"insert": tilde("2"), "ic": tilde("2"), "delete": tilde("3"), "del": tilde("3"), "dc": tilde("3"),
	"f1": {"O", "", "P"}, "f2": {"O", "", "Q"}, "f3": {"O", "", "R"}, "f4": {"O", "", "S"},
	"f5": tilde("15"), "f6": tilde("17"), "f7": tilde("18"), "f8": tilde("19"),
	"f9": tilde("20"), "f10": tilde("21"), "f11": tilde("23"), "f12": tilde("24"),
}
