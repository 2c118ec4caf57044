package door

import (
	"net/http"
	"strings"

	"github.com/toolward/toolward/desk"
)

// Row is one route: what it answers to, what its caller does there, and who answers. The right that it needs is that of the
// operation, which stands at the desk. C is how a room knows its callers.
type Row[C any] struct {
	Pattern string // method and path
	Does    desk.Operation
	Handle  func(http.ResponseWriter, *http.Request, C) error
}

// On makes a row.
func On[C any](pattern string, does desk.Operation, handle func(http.ResponseWriter, *http.Request, C) error) Row[C] {
	return Row[C]{Pattern: pattern, Does: does, Handle: handle}
}

// AddRows adds routes below prefix. guard makes the handler of a row: it finds out who calls, and refuses whoever may
// not do the row's operation. AddRows panics at a row whose operation has no right, as a mux does at a wrong pattern: a route
// that everybody may use must never come from an operation that somebody forgot.
func AddRows[C any](mux *http.ServeMux, prefix string, rows []Row[C], guard func(Row[C]) http.Handler) {
	for _, row := range rows {
		if !row.Does.Right().Known() {
			panic("the route " + row.Pattern + " names no operation that has a right")
		}
		method, path, _ := strings.Cut(row.Pattern, " ")
		mux.Handle(method+" "+prefix+path, guard(row))
	}
}
