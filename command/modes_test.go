package command

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
)

func TestHostVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "hostGate", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			Config struct {
				Host Host
				modes.Settings
			}
			SandboxAvailable bool
			FileSecurity     modes.Security
			Elevated         *struct {
				Enabled, Allowed bool
				DefaultLevel     string
			}
			Params HostParams
		}
		gatetest.Decode(t, input, &in)
		config := HostConfig{
			Host: in.Config.Host, Settings: in.Config.Settings, SandboxAvailable: in.SandboxAvailable,
			FileModes: modes.Settings{Security: in.FileSecurity}, Elevation: Elevation{FailedGates: []string{"tools.elevated.enabled"}},
		}
		if e := in.Elevated; e != nil {
			config.Elevation.Level = e.DefaultLevel
			if e.Enabled && e.Allowed {
				config.Elevation.FailedGates = nil
			}
		}
		place, err := Choose(config, in.Params)
		if refused, ok := errors.AsType[*HostError](err); ok {
			return map[string]any{"error": refused.Code}
		}
		return map[string]any{"host": place.Host, "security": place.Modes.Security, "ask": place.Modes.Ask, "approvals": place.Approvals}
	})
}

func TestChoose(t *testing.T) {
	yes := true
	open := Elevation{Level: "full"}
	for name, c := range map[string]struct {
		config HostConfig
		params HostParams
		want   string
	}{
		"nothing there":                       {HostConfig{}, HostParams{}, "gateway allowlist on-miss true"},
		"sandbox asked for without one":       {HostConfig{}, HostParams{Host: "sandbox"}, CodeSandboxUnavailable},
		"sandbox asked for on the gateway":    {HostConfig{Host: HostGateway, SandboxAvailable: true}, HostParams{Host: "sandbox"}, CodeHostNotAllowed},
		"gateway asked for where it is usual": {HostConfig{}, HostParams{Host: " Gateway "}, "gateway allowlist on-miss true"},
		"unknown host configured":             {HostConfig{Host: "Gateway"}, HostParams{}, CodeInvalidHost},
		"unknown security":                    {HostConfig{}, HostParams{Security: "none"}, CodeInvalidSecurity},
		"unknown ask":                         {HostConfig{}, HostParams{Ask: "never"}, CodeInvalidAsk},
		"parameters in any case":              {HostConfig{Settings: modes.Settings{Security: modes.SecurityFull}}, HostParams{Security: " DENY", Ask: "Always "}, "gateway deny always true"},
		"the node's file counts too":          {HostConfig{Host: HostNode, Settings: modes.Settings{Security: modes.SecurityFull, Ask: modes.AskOff}, FileModes: modes.Settings{Ask: modes.AskAlways}}, HostParams{}, "node full always true"},
		"full":                                {HostConfig{SandboxAvailable: true, Elevation: open}, HostParams{Elevated: &yes}, "gateway full off false"},
		"full by the session":                 {HostConfig{Elevation: open}, HostParams{}, "gateway full off false"},
		"full, but the call wants questions":  {HostConfig{Elevation: open}, HostParams{Ask: "always"}, "gateway full always true"},
		"full against a broken file":          {HostConfig{Elevation: open, FileModes: modes.Settings{Security: "open"}}, HostParams{}, CodeDeniedByApprovalFile},
		"full with an odd level":              {HostConfig{Elevation: Elevation{Level: "root"}}, HostParams{}, "gateway allowlist on-miss true"},
	} {
		place, err := Choose(c.config, c.params)
		got := ""
		if refused, ok := errors.AsType[*HostError](err); ok {
			got = refused.Code
		} else {
			got = string(place.Host) + " " + string(place.Modes.Security) + " " + string(place.Modes.Ask) + " " + map[bool]string{true: "true", false: "false"}[place.Approvals]
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestElevatedGates(t *testing.T) {
	yes, no := true, false
	gateway := ElevatedConfig{Enabled: &yes, AllowFrom: map[string][]string{"chat": {"7", "name:Ann", " e164:+49 "}}}
	for name, c := range map[string]struct {
		agent  *ElevatedConfig
		caller toolward.Caller
		failed int
	}{
		"listed by id":                 {nil, toolward.Caller{Channel: "chat", Sender: "7"}, 0},
		"listed by phone":              {nil, toolward.Caller{Channel: "chat", SenderPhone: "+49"}, 0},
		"listed by name":               {nil, toolward.Caller{Channel: "chat", SenderName: "Ann"}, 0},
		"a name that looks like an id": {nil, toolward.Caller{Channel: "chat", SenderName: "7"}, 1},
		"nobody":                       {nil, toolward.Caller{}, 1},
		"another channel":              {nil, toolward.Caller{Channel: "mail", Sender: "7"}, 1},
		"part of an id":                {nil, toolward.Caller{Channel: "chat", Sender: "77"}, 1},
		"in a group":                   {nil, toolward.Caller{Channel: "chat", Sender: "7", Context: "group"}, 1},
		"the agent says no":            {&ElevatedConfig{Enabled: &no}, toolward.Caller{Channel: "chat", Sender: "7"}, 1},
		"the agent lists others":       {&ElevatedConfig{AllowFrom: map[string][]string{"chat": {"8"}}}, toolward.Caller{Channel: "chat", Sender: "7"}, 1},
		"the agent says yes":           {&ElevatedConfig{Enabled: &yes, AllowFrom: map[string][]string{"chat": {"9"}}}, toolward.Caller{Channel: "chat", Sender: "9"}, 1},
	} {
		if failed := ElevatedGates(gateway, c.agent, c.caller); len(failed) != c.failed {
			t.Errorf("%s: %q fail, want %d", name, failed, c.failed)
		}
	}
	if failed := ElevatedGates(ElevatedConfig{}, nil, toolward.Caller{Channel: "chat", Sender: "7"}); len(failed) != 2 {
		t.Errorf("without configuration %q fail", failed)
	}
}
