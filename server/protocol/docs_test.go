package protocol

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/protocol.md")

// tables are the parts of docs/protocol.md that come from the tables of this package.
func tables() map[string]string {
	var methods, events strings.Builder
	methods.WriteString("| method | scope | person | parameters | result | |\n|---|---|---|---|---|---|\n")
	for _, m := range methodTable() {
		scope, person := "any", ""
		if m.name != openMethod {
			scope = "`" + methodScope(m.name) + "`"
		}
		if m.person {
			person = "yes"
		}
		params := "–"
		if m.params.text != "{}" {
			params = "`" + m.params.text + "`"
		}
		fmt.Fprintf(&methods, "| `%s` | %s | %s | %s | %s | %s |\n", m.name, scope, person, params, m.result, m.meaning)
	}
	events.WriteString("| event | scope | a slow client may miss it | payload | |\n|---|---|---|---|---|\n")
	for _, e := range eventTable {
		scope, droppable := "any", "no"
		if e.scope != "" {
			scope = "`" + e.scope + "`"
		}
		if e.droppable {
			droppable = "yes"
		}
		fmt.Fprintf(&events, "| `%s` | %s | %s | %s | %s |\n", e.name, scope, droppable, e.payload, e.meaning)
	}
	return map[string]string{"methods": methods.String(), "events": events.String()}
}

// The tables of the documentation are those of the program.
func TestProtocolPageIsTrue(t *testing.T) {
	const path = "../../docs/protocol.md"
	raw, err := os.ReadFile(path)
	must(t, err)
	page := string(raw)
	for name, table := range tables() {
		begin, end := "<!-- "+name+": made by go test ./server/protocol -update -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		old, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("the page has no place for the table of %s", name)
		}
		if old != table && !*update {
			t.Errorf("the table of %s is not the program's: go test ./server/protocol -update", name)
		}
		page = before + begin + table + end + after
	}
	if *update {
		must(t, os.WriteFile(path, []byte(page), 0o644))
	}
}

// Every method of the table has a scope of its own in the list of all methods, or is meant for operator.admin.
func TestMethodsHaveScopes(t *testing.T) {
	admin := []string{"audit.tail", "exec.approvals.get", "exec.approvals.set", "health"}
	for _, m := range methodTable() {
		_, listed := methodScopes[m.name]
		if exempt := strings.Contains(strings.Join(admin, " "), m.name); !listed && !exempt {
			t.Errorf("%s needs operator.admin only because nobody classified it", m.name)
		}
		if m.meaning == "" || m.result == "" {
			t.Errorf("%s is not explained", m.name)
		}
	}
}
