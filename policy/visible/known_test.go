package visible

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestKnownTools(t *testing.T) {
	s := compile(t, Config{Agents: []Agent{{ID: "Zed"}, {ID: "abe"}}}, append(gatetest.Plugin("b", "b__x"), append(gatetest.Plugin("a", "z__y"), coreTools()[0])...)...)
	known := s.KnownTools()
	if len(known) != 25+2+1+2 {
		t.Fatalf("%d tools", len(known))
	}
	if k := known[0]; k.Name != "read" || k.Section != "fs" || !k.Available {
		t.Errorf("%+v", k)
	}
	if k := known[1]; k.Name != "write" || k.Available {
		t.Errorf("%+v", k)
	}
	if last := known[len(known)-1]; last.Name != "b__x" || last.Plugin != "b" || last.Section != SectionPlugin {
		t.Errorf("%+v", last)
	}
	if diff := cmp.Diff([]string{"abe", "zed"}, s.AgentIDs()); diff != "" {
		t.Error(diff)
	}
	if !s.Knows("cron") || !s.Knows("z__y") || s.Knows("nope") {
		t.Error("Knows")
	}
}
