package protocol

import "strconv"

// quoteShort quotes what a client chose, bounded and with everything unprintable escaped.
func quoteShort(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.QuoteToASCII(s)
}
