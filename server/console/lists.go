package console

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/toolward/toolward/server/door"
)

// pageLength is how many decisions one page lists.
const pageLength = 60

// choice is one option of a select.
type choice struct {
	Value, Name string
	Here        bool
}

// belowOf reads the position that a page begins below; 0 for the first page.
func belowOf(query url.Values) (int64, error) {
	below := query.Get("below")
	if below == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(below, 10, 64)
	if err != nil || n < 1 {
		return 0, door.NewProblem(http.StatusBadRequest, "", "below: %s is not a position", door.QuoteShort(below))
	}
	return n, nil
}

// olderLink leads to the page below a position, with the filters that keep names.
func olderLink(path string, query url.Values, seq int64, keep ...string) string {
	next := url.Values{"below": {strconv.FormatInt(seq, 10)}}
	for _, name := range keep {
		if value := query.Get(name); value != "" {
			next.Set(name, value)
		}
	}
	return path + "?" + next.Encode()
}

// showProblem is the page of a request that went wrong.
func (s *Server) showProblem(w http.ResponseWriter, r *http.Request, p *door.Problem) {
	base := ""
	if v, err := s.visitorOf(r); err == nil {
		base = v.base
	}
	view := struct {
		page
		Text string
	}{page{Title: sentence(p.Message), Base: base}, sentence(p.Hint)}
	if err := renderPage(w, p.Status, "problem", view); err != nil {
		s.log.Error("a problem page failed", "err", err)
		door.WriteJSON(w, p.Status, p)
	}
}
