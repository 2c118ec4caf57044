package door

import (
	"net/http"
	"testing"

	"github.com/toolward/toolward/desk"
)

// A row that forgets its operation, or names one that has no right, stops the gateway at its start.
func TestNoRouteWithoutAnOperation(t *testing.T) {
	for does, refused := range map[desk.Operation]bool{"": true, "see everything": true, desk.SeeRecords: false} {
		mux := http.NewServeMux()
		rows := []Row[int]{On("GET /secrets", does, func(http.ResponseWriter, *http.Request, int) error { return nil })}
		func() {
			defer func() {
				if got := recover() != nil; got != refused {
					t.Errorf("operation %q: refused %v, want %v", does, got, refused)
				}
			}()
			AddRows(mux, "/c/{key}", rows, func(Row[int]) http.Handler { return http.NotFoundHandler() })
		}()
	}
}
