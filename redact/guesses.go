package redact

import "strings"

// longestGuess bounds how much of a value is looked at to decide; the whole value is hidden all the same.
const longestGuess = 256

// urlPassword hides the password of scheme://user:password@host.
func urlPassword(s string, at, length int) (int, int, bool) {
	start := at + length
	limit := min(len(s), start+longestGuess)
	colon := -1
	for i := start; i < limit; i++ {
		switch b := s[i]; {
		case b == ':' && colon < 0:
			colon = i + 1
		case b == '@':
			if colon < 0 || colon == i || placeholder(s[colon:i]) {
				return 0, 0, false
			}
			return colon, i, true
		case b <= ' ' || b == '/' || b == '"' || b == '\'' || b == '<' || b == '>' || b == '`':
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// authorization hides the value of "Bearer …" and "Basic …".
func authorization(s string, at, length int) (int, int, bool) {
	start := at + length
	if at > 0 && word[s[at-1]] {
		return 0, 0, false
	}
	end := start
	for end < len(s) && (padded[s[end]] || s[end] == '.' || s[end] == '~') {
		end++
	}
	value := s[start:end]
	return start, end, len(value) >= 12 && mixed(value) && !placeholder(value)
}

// assigned hides the value that is given to a name ending in the prefix: NAME=value, "name": "value", name: value,
// --name value. least is the shortest value worth hiding.
func assigned(least int) func(string, int, int) (int, int, bool) {
	return func(s string, at, length int) (int, int, bool) {
		i := at + length
		if rest := s[i:]; len(rest) > 4 && (rest[0] == '_' || rest[0] == '-') && strings.EqualFold(rest[1:4], "key") {
			i += 4 // secret_key
		}
		start, how := separator(s, i)
		if how == noValue {
			return 0, 0, false
		}
		quote := byte(0)
		if start < len(s) && (s[start] == '"' || s[start] == '\'' || s[start] == '`') {
			quote = s[start]
			start++
		} else if strings.HasPrefix(s[start:], `\"`) {
			quote = '"'
			start += 2
		}
		if how == option && !strings.HasPrefix(s[optionStart(s, at):], "--") {
			return 0, 0, false
		}
		// Decided on a bounded stretch, for the same reason as in key.
		value := s[start:valueEnd(s[:min(len(s), start+longestGuess)], start, quote)]
		if len(value) < least && (quote == 0 || len(value) < min(least, 6)) {
			return 0, 0, false
		}
		if placeholder(value) || reference(value, quote != 0) {
			return 0, 0, false
		}
		shouted := how == environment && s[at] >= 'A' && s[at] <= 'Z' // PASSWORD=…, not password=name
		if (least > 4 || quote == 0 && !shouted) && !mixed(value) {
			return 0, 0, false
		}
		return start, valueEnd(s, start, quote), true
	}
}

// how says by what sign a value follows its name.
type how uint8

const (
	noValue     how = iota
	environment     // NAME=value, no blanks
	sign            // = : := => with blanks or quotes
	option          // --name value
)

// separator finds the start of the value after a name that ends at i.
func separator(s string, i int) (start int, by how) {
	begin := i
	for i < len(s) && i-begin < 3 && (s[i] == '"' || s[i] == '\'' || s[i] == ']' || s[i] == '\\') {
		i++ // the closing quote of the name
	}
	blanks := i
	for i < len(s) && i-blanks < 8 && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i >= len(s) {
		return 0, noValue
	}
	switch {
	case s[i] == '=' && i == begin && i+1 < len(s) && s[i+1] != ' ' && s[i+1] != '=':
		return i + 1, environment
	case s[i] == '=' || s[i] == ':':
		i++
		for i < len(s) && (s[i] == '=' || s[i] == '>') {
			i++
			if s[i-1] == '=' && i-begin > 16 {
				break
			}
		}
		if s[i-1] == '=' && s[i-2] == '=' {
			return 0, noValue // a comparison
		}
		blanks = i
		for i < len(s) && i-blanks < 8 && (s[i] == ' ' || s[i] == '\t') {
			i++
		}
		if i >= len(s) {
			return 0, noValue
		}
		return i, sign
	case i > begin && blanks == begin:
		return i, option
	}
	return 0, noValue
}

// optionStart goes back to where the word that contains i begins, over a short distance.
func optionStart(s string, i int) int {
	start := i
	for start > 0 && i-start < 40 && word[s[start-1]] {
		start--
	}
	return start
}

func valueEnd(s string, start int, quote byte) int {
	for i := start; i < len(s); i++ {
		b := s[i]
		if quote != 0 {
			if b == quote || b == '\n' {
				if i > start && s[i-1] == '\\' && b == quote {
					return i - 1 // an escaped quote ends a value inside quoted text
				}
				return i
			}
			continue
		}
		if b <= ' ' || b == '"' || b == '\'' || b == '`' || b == ',' || b == ';' || b == '&' || b == '<' || b == '>' || b == ')' || b == '}' || b == '|' {
			return i
		}
	}
	return len(s)
}

// mixed reports whether a value looks made up by a machine, or at least not like a word: letters and digits together,
// or length.
func mixed(s string) bool {
	var letters, digits, signs int
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b >= '0' && b <= '9':
			digits++
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			letters++
		default:
			signs++
		}
	}
	return letters > 0 && digits > 0 || (signs > 0 && letters > 0 && len(s) >= 8 && !strings.ContainsAny(s, " ._-/")) || digits >= 12
}

// reference reports whether a value only names where the secret comes from: $NAME, ${NAME}, $(command), {{name}},
// <name>, %NAME%, and in program text a call, an index or a path of names.
func reference(s string, quoted bool) bool {
	last := s[len(s)-1]
	switch {
	case s[0] == '$' && len(s) > 1 && (s[1] == '{' || s[1] == '(' || s[1] == '_' || s[1] >= 'A' && s[1] <= 'Z'),
		s[0] == '<' && last == '>', s[0] == '%' && last == '%',
		strings.Contains(s, "${"), strings.Contains(s, "{{"), strings.HasPrefix(s, "[hidden"):
		return true
	case quoted:
		return strings.Contains(s, " ") && !strings.ContainsAny(s, "0123456789") // a sentence
	case strings.IndexByte("$({[*&@<%", s[0]) >= 0:
		return true
	}
	for _, sign := range []string{"(", "[", "process.env", "env.", "config.", "::"} {
		if strings.Contains(s, sign) {
			return true
		}
	}
	return false
}

// placeholder reports whether a value is what documentation writes where a secret would stand.
func placeholder(s string) bool {
	if !various3(s) {
		return true
	}
	low := strings.ToLower(s)
	for _, word := range []string{"your", "example", "changeme", "placeholder", "redacted", "xxxx", "****", "...", "dummy"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	switch low {
	case "null", "none", "true", "false", "string", "password", "secret", "token", "undefined", "optional", "required", "boolean", "number", "nil":
		return true
	}
	return false
}

// various3 refuses values of one or two different characters.
func various3(s string) bool {
	if s == "" {
		return false
	}
	a, b := s[0], byte(0)
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == a || s[i] == b:
		case b == 0:
			b = s[i]
		default:
			return true
		}
	}
	return false
}
