package protocol

import (
	"net/http"
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
