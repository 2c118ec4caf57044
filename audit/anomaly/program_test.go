package anomaly

import (
	"testing"
	"time"

	"github.com/toolward/toolward"
)

// connection is a connection of a program in a sandbox.
func connection(t *testing.T, host string) *toolward.Request {
	r := request(t, "egress", params{"host": host}, toolward.Facts{Hosts: []string{"tcp://" + host + ":443"}})
	r.Call.Surface = toolward.SurfaceSandbox
	r.Inputs.External = true
	return r
}

// How often programs connect says nothing about the agent; where they do, and what people say of it, does.
func TestConnectionsOfPrograms(t *testing.T) {
	m := monitor(t, Config{Loops: LoopConfig{Enabled: yes()}})
	for i := range 300 {
		at := start.Add(time.Duration(i) * time.Millisecond)
		if report := m.Before(at, connection(t, "registry.example")); !report.isQuiet() {
			t.Fatalf("connection %d: %s", i, firedText(report))
		}
		if report := m.Denied(at, connection(t, "registry.example"), toolward.CodeValidation); !report.isQuiet() {
			t.Fatalf("refusal %d: %s", i, firedText(report))
		}
	}
	// To start the command again is no other way; another tool is.
	again := request(t, "exec", params{"command": "x"}, toolward.Facts{Command: "curl https://registry.example", Hosts: []string{"https://registry.example:443"}})
	if report := m.Before(start.Add(time.Second), again); len(report.Fired) > 0 {
		t.Errorf("the same command: %s", firedText(report))
	}
	fetch := request(t, "web_fetch", params{"url": "x"}, toolward.Facts{Hosts: []string{"https://registry.example:443"}})
	if report := m.Before(start.Add(time.Second), fetch); firedText(report) != "evasion 1 ask" {
		t.Errorf("another tool: %q", firedText(report))
	}
	said := ""
	for range 3 {
		report := m.Denied(start.Add(2*time.Second), connection(t, "evil.example"), toolward.CodeDeniedByUser)
		said = firedText(report)
	}
	if said != "denied 3 elevate" {
		t.Errorf("three times a person said no: %q", said)
	}
}
