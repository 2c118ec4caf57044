package rule

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// callOf is a call of write with parameters and facts.
func callOf(t testing.TB, params string, facts toolward.Facts) *toolward.Request {
	t.Helper()
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(params))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return &toolward.Request{
		Call: toolward.Call{
			Session: "agent:main:chat", Surface: toolward.SurfaceMCP, Host: toolward.HostGateway, WorkDir: "/ws/src",
			Caller: toolward.Caller{Agent: "main", Owner: true, Context: "main", Channel: "slack", Workspace: "/ws"},
		},
		Tool: &toolward.Tool{Name: "write"}, Params: toolward.NewParams([]byte(params), object), Facts: facts, Level: toolward.Normal,
	}
}

func compiled(t testing.TB, text string) *Condition {
	t.Helper()
	c, err := Compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// holds evaluates a condition as for a small call and as for a large one, which must agree.
func holds(t testing.TB, c *Condition, r *toolward.Request) (bool, error) {
	t.Helper()
	call := Look(r, r.Facts.Action, r.Level)
	defer call.Release()
	yes, err := c.Holds(call)
	if call.small {
		call.small = false
		metered, meteredErr := c.Holds(call)
		if metered != yes || (err == nil) != (meteredErr == nil) {
			t.Errorf("quick: %t, %v; metered: %t, %v", yes, err, metered, meteredErr)
		}
	}
	return yes, err
}
