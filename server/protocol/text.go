package protocol

import (
	"net/http"
	"strconv"
	"strings"
)

// userAgent is what a client calls itself, for the log. It chooses that text freely, so it is bounded; the log escapes it.
func userAgent(h http.Header) string {
	const most = 200
	name := h.Get("User-Agent")
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

// quoteShort quotes what a client chose, bounded and with everything unprintable escaped.
func quoteShort(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.QuoteToASCII(s)
}
