package door

import (
	"net/http"
	"testing"

	"github.com/toolward/toolward/identity"
)

// A row that forgets its right, or names one that nobody has defined, stops the gateway at its start.
func TestNoRouteWithoutARight(t *testing.T) {
	for right, refused := range map[identity.Right]bool{"": true, "see everything": true, identity.RightWatch: false} {
		mux := http.NewServeMux()
		rows := []Row[int]{On("GET /secrets", right, func(http.ResponseWriter, *http.Request, int) error { return nil })}
		func() {
			defer func() {
				if got := recover() != nil; got != refused {
					t.Errorf("right %q: refused %v, want %v", right, got, refused)
				}
			}()
			AddRows(mux, "/c/{key}", rows, func(Row[int]) http.Handler { return http.NotFoundHandler() })
		}()
	}
}
