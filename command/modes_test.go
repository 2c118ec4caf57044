package command

import (
	"encoding/json"
	"errors"
	"strings"
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
			Host: in.Config.Host, SandboxAvailable: in.SandboxAvailable,
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
		inForce := modesAt(place, in.Config.Settings, config.FileModes, in.Params)
		return map[string]any{"host": place.Host, "security": inForce.Security, "ask": inForce.Ask, "approvals": guarded(inForce)}
	})
}

// modesAt are the modes by which a command is judged at its place, as package policy finds them: those of the configuration on
// that host, tightened by what [Commands.Judge] reports of the file and the call.
func modesAt(place Place, configured, file modes.Settings, params HostParams) modes.Modes {
	asked, err := params.read()
	if err != nil {
		panic(err) // Choose has read them
	}
	if place.Host == HostSandbox {
		file = modes.Settings{}
	}
	file = file.Tightened(asked.security, asked.ask)
	analysis := &toolward.CommandAnalysis{Security: string(file.Security), Ask: string(file.Ask)}
	return modes.Merge(configured, modes.Settings{}).At(toolward.Host(place.Host), toolward.Normal).For(analysis)
}

// guarded reports whether the allowlist or a question can stand before a command.
func guarded(m modes.Modes) bool {
	return m.Security != modes.SecurityFull || m.Ask != modes.AskOff
}

func TestChoose(t *testing.T) {
	yes := true
	open := Elevation{Level: "full"}
	for name, c := range map[string]struct {
		config   HostConfig
		params   HostParams
		settings modes.Settings
		want     string
	}{
		"nothing there":                       {HostConfig{}, HostParams{}, modes.Settings{}, "gateway allowlist on-miss"},
		"sandbox asked for without one":       {HostConfig{}, HostParams{Host: "sandbox"}, modes.Settings{}, CodeSandboxUnavailable},
		"sandbox asked for on the gateway":    {HostConfig{Host: HostGateway, SandboxAvailable: true}, HostParams{Host: "sandbox"}, modes.Settings{}, CodeHostNotAllowed},
		"gateway asked for where it is usual": {HostConfig{}, HostParams{Host: " Gateway "}, modes.Settings{}, "gateway allowlist on-miss"},
		"unknown host configured":             {HostConfig{Host: "Gateway"}, HostParams{}, modes.Settings{}, CodeInvalidHost},
		"unknown security":                    {HostConfig{}, HostParams{Security: "none"}, modes.Settings{}, CodeInvalidSecurity},
		"unknown ask":                         {HostConfig{}, HostParams{Ask: "never"}, modes.Settings{}, CodeInvalidAsk},
		"parameters in any case":              {HostConfig{}, HostParams{Security: " DENY", Ask: "Always "}, modes.Settings{Security: modes.SecurityFull}, "gateway deny always"},
		"the node's file counts too":          {HostConfig{Host: HostNode, FileModes: modes.Settings{Ask: modes.AskAlways}}, HostParams{}, modes.Settings{Security: modes.SecurityFull, Ask: modes.AskOff}, "node full always"},
		"full":                                {HostConfig{SandboxAvailable: true, Elevation: open}, HostParams{Elevated: &yes}, modes.Settings{}, "gateway allowlist on-miss full"},
		"full by the session":                 {HostConfig{Elevation: open}, HostParams{}, modes.Settings{}, "gateway allowlist on-miss full"},
		"full, but the call wants questions":  {HostConfig{Elevation: open}, HostParams{Ask: "always"}, modes.Settings{}, "gateway allowlist always full"},
		"full against a broken file":          {HostConfig{Elevation: open, FileModes: modes.Settings{Security: "open"}}, HostParams{}, modes.Settings{}, CodeDeniedByApprovalFile},
		"full with an odd level":              {HostConfig{Elevation: Elevation{Level: "root"}}, HostParams{}, modes.Settings{}, "gateway allowlist on-miss"},
	} {
		place, err := Choose(c.config, c.params)
		got := ""
		if refused, ok := errors.AsType[*HostError](err); ok {
			got = refused.Code
		} else {
			inForce := modesAt(place, c.settings, c.config.FileModes, c.params)
			got = strings.TrimSpace(strings.Join([]string{string(place.Host), string(inForce.Security), string(inForce.Ask), string(place.Elevated)}, " "))
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
