package console

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
)

// newEntry is one line of recent decisions. A record that cannot be read still has a line.
func newEntry(base string, r *audit.Record) entry {
	e := entry{
		ID: strconv.FormatInt(r.Seq, 10), Kind: r.Verdict, Agent: oneLine(cmp.Or(r.Agent, "unknown")), Tool: oneLine(r.Tool), Time: r.Time,
		Clock: r.Time.Local().Format("15:04"), Href: base + "/record/" + strconv.FormatInt(r.Seq, 10),
	}
	if !sameDay(r.Time, time.Now()) {
		e.Clock = r.Time.Local().Format("2 Jan 15:04")
	}
	var d desk.DecisionRecord
	if err := json.Unmarshal([]byte(r.JSON), &d); err != nil {
		e.How = oneLine("This record cannot be read")
		return e
	}
	e.What = oneLine(desk.AboutOf(&d))
	e.Digest = shortDigest(d.Digest)
	e.How = oneLine(desk.HowOf(&d))
	return e
}
