package policy

// Selectors are the parameters that choose the row of the class table. Records keep them if they are plain words, so
// that another policy can judge a call again; "a.b" is the member b of the parameter a.
func Selectors() []string {
	return []string{"action", "elevated", "fn", "invokeCommand", "kind", "model", "request.fn", "request.kind"}
}

// HasRows reports whether the class table has rows for a tool of Toolward's own. The class of any other tool of its
// own is the one that the tool declares.
func HasRows(tool string) bool {
	for _, l := range classTable() {
		if l.tool == tool {
			return true
		}
	}
	return false
}
