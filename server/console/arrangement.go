package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// maxCards is how many waiting calls a page shows; the others follow as these are answered.
const maxCards = 40

// arrangement is the order in which a person wants to see what waits.
type arrangement struct {
	Risk      bool // critical calls first, else in the order in which they came
	BySession bool // the calls of one session together
}

func arrangementOf(query url.Values) arrangement {
	return arrangement{Risk: query.Get("order") == "risk", BySession: query.Get("group") == "session"}
}

// Query is the arrangement as a link carries it.
func (a arrangement) Query() string {
	query := url.Values{"order": {"arrival"}}
	if a.Risk {
		query.Set("order", "risk")
	}
	if a.BySession {
		query.Set("group", "session")
	}
	return query.Encode()
}

// Ordered is the same arrangement in another order.
func (a arrangement) Ordered(risk bool) arrangement { return arrangement{risk, a.BySession} }

// Grouped is the same arrangement with the sessions apart, or not.
func (a arrangement) Grouped(by bool) arrangement { return arrangement{a.Risk, by} }

// sort puts the calls into the order. Groups stand where the first of their calls would stand alone.
func (a arrangement) sort(list []*approval.Record) {
	slices.SortStableFunc(list, func(x, y *approval.Record) int {
		risk := 0
		if a.Risk {
			risk = cmp.Compare(x.Request.Severity, y.Request.Severity) // critical is the smallest
		}
		return cmp.Or(risk, cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
	if !a.BySession {
		return
	}
	place := map[toolward.SessionKey]int{}
	for i, r := range list {
		if _, known := place[r.Request.Session]; !known {
			place[r.Request.Session] = i
		}
	}
	slices.SortStableFunc(list, func(x, y *approval.Record) int {
		return cmp.Compare(place[x.Request.Session], place[y.Request.Session])
	})
}

// arrangedOf is the order of the page that a form was on.
func arrangedOf(r *http.Request) arrangement {
	query, err := url.ParseQuery(r.PostForm.Get("arranged"))
	if err != nil {
		return arrangement{}
	}
	return arrangementOf(query)
}
