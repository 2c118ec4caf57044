package builtin

import (
	"fmt"
	"strings"
)

// defaultLogLines is how many of the last lines the log action shows when nothing else is asked for.
const defaultLogLines = 200

// logSlice cuts lines out of a log. CRLF counts as a line end, and the empty line after the last one is dropped.
// A limit alone gives the last lines; an offset, from 0, gives the lines from there on, at most limit. Nil is
// absent.
func logSlice(text string, offset, limit *int) (slice string, totalLines int) {
	lines := logLines(text)
	totalLines = len(lines)
	from, to := 0, totalLines
	switch {
	case offset == nil && limit != nil:
		from = totalLines - max(*limit, 0)
	case offset != nil:
		from = *offset
		if limit != nil && *limit < totalLines {
			to = from + max(*limit, 0)
		}
	}
	from = min(max(from, 0), totalLines)
	to = min(max(to, from), totalLines)
	return strings.Join(lines[from:to], "\n"), totalLines
}

func logLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// shownLog is logSlice with the default of the log action: the last 200 lines, with a note when there are more.
func shownLog(text string, offset, limit *int) (slice string, totalLines int) {
	if offset != nil || limit != nil {
		return logSlice(text, offset, limit)
	}
	last := defaultLogLines
	slice, totalLines = logSlice(text, nil, &last)
	if totalLines > last {
		slice += fmt.Sprintf("\n\n[showing the last %d of %d lines; use offset and limit for others]", last, totalLines)
	}
	return slice, totalLines
}
