package bridge

// UnknownClaudeArguments lists the arguments of a tool of Claude Code that the table does not translate.
func UnknownClaudeArguments(tool string, arguments []string) (unknown []string) {
	f, err := claudeTools[tool].compile()
	if err != nil {
		return arguments
	}
	if _, known := claudeTools[tool]; !known {
		return append(arguments, tool)
	}
	for _, a := range arguments {
		if !f.known[a] {
			unknown = append(unknown, a)
		}
	}
	return unknown
}
