package schema

import "strconv"

// Error says which parameter is wrong and what is expected there. It may be shown to a model: it names the
// parameter and the expected type, never the value, a pattern or a threshold.
type Error struct {
	Field   string // dotted path of the parameter; "" means the arguments as a whole
	Problem string // what is wrong, in words
	Want    string // what is expected, for instance "string"; may be empty
}

// Error returns one line for people and models.
func (e *Error) Error() string {
	text := "invalid arguments: "
	if e.Field != "" {
		text += "parameter " + quoteName(e.Field) + " "
	}
	text += e.Problem
	if e.Want != "" {
		text += " (expected " + e.Want + ")"
	}
	return text
}

// maxNameShown bounds how much of a name that the caller chose is repeated back.
const maxNameShown = 80

// quoteName makes a name from the call printable: control and invisible characters are escaped, so that a hostile
// name cannot rewrite the line it is shown on.
func quoteName(name string) string {
	if len(name) > maxNameShown {
		name = name[:maxNameShown] + "…"
	}
	return strconv.QuoteToASCII(name)
}
