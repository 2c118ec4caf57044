package door

import (
	"net/http"
	"strings"

	"github.com/toolward/toolward/identity"
)

// Row is one route: what it answers to, the right that its caller needs, and who answers. C is how a room knows its
// callers.
type Row[C any] struct {
	Pattern string // method and path
	Right   identity.Right
	Handle  func(http.ResponseWriter, *http.Request, C) error
}

// On makes a row.
func On[C any](pattern string, right identity.Right, handle func(http.ResponseWriter, *http.Request, C) error) Row[C] {
	return Row[C]{Pattern: pattern, Right: right, Handle: handle}
}

// AddRows adds routes below prefix. guard makes the handler of a row: it finds out who calls, and refuses whoever lacks
// the row's right. AddRows panics at a row without a right that exists, as a mux does at a wrong pattern: a route that
// everybody may use must never come from a right that somebody forgot.
func AddRows[C any](mux *http.ServeMux, prefix string, rows []Row[C], guard func(Row[C]) http.Handler) {
	for _, row := range rows {
		if !row.Right.Known() {
			panic("the route " + row.Pattern + " names no right that its caller needs")
		}
		method, path, _ := strings.Cut(row.Pattern, " ")
		mux.Handle(method+" "+prefix+path, guard(row))
	}
}
