package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
)

// ToolName is the name of the internal tool.
const ToolName = "egress"

// Findings of the tool.
const (
	findUnlisted = "egress_unlisted" // the host is not listed, and others are refused
	findRemote   = "egress_remote"   // the host has become a remote of the project; it decides nothing
	findInternal = "egress_internal" // the host is a machine of the own network; it decides nothing
	findMachine  = "egress_machine"  // the host is a service of this machine; it decides nothing
	findWanted   = "egress_for"      // which command it is for; it decides nothing
	findLimit    = "egress_limit"    // as much has left to the host as may without a person
)

// arguments is a call of the tool.
type arguments struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

// target is where a connection goes: a host in its one form, and a port.
type target struct {
	host string
	port uint16
}

func (t target) String() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

func (p *Proxies) newTool() *toolward.Tool {
	return &toolward.Tool{
		Name: ToolName, Internal: true, Description: "connects a program in a sandbox to a host",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["host","port"],"properties":{` +
			`"host":{"type":"string","minLength":1,"maxLength":255},"port":{"type":"integer","minimum":1,"maximum":65535}}}`),
		Facts: p.facts,
	}
}

// facts is what a connection touches: the settings of this very moment, so that a changed list counts at once.
func (p *Proxies) facts(_ context.Context, r *toolward.Request) (toolward.Facts, error) {
	var a arguments
	if err := json.Unmarshal(r.Params.Canonical(), &a); err != nil {
		return toolward.Facts{}, &toolward.InvalidArgs{Text: "expected a host and a port"}
	}
	to := target{a.Host, a.Port}
	flight, way := p.asked(r.Call.ID, to), route{}
	if flight != nil {
		way = flight.route
	}
	if host, err := p.guard.Policy().Host(bracketed(a.Host)); way.guard == nil && (err != nil || host != a.Host) {
		return toolward.Facts{}, &toolward.InvalidArgs{Field: "host", Text: "it is not in its one form"}
	}
	reach := p.options.Settings().For(r.Call.Caller.Agent).Reach()
	listed, most := p.listed(way, reach, r.Call.Caller.Workspace, to)
	f := toolward.Facts{
		Host: toolward.HostSandbox, Hosts: []string{way.scheme() + to.String()}, Listed: listed,
		// What programs inside read from there reaches the session by what they print.
		External: []string{to.String()},
	}
	if key := reach.Remotes(); key != "" && (f.Listed == "" || f.Listed == key) {
		switch now := remoteNow(r.Call.Caller.Workspace, to); {
		case !now:
			f.Listed = "" // it is no remote of the project any more
		case f.Listed == "":
			f.Findings = append(f.Findings, toolward.Finding{
				Code: findRemote, Effect: toolward.EffectNote,
				Detail: to.String() + " is a git remote of the project now, and was none before the first command ran in a sandbox there",
			})
		}
	}
	if f.Listed == "" && reach.Unlisted != settings.UnlistedAsk {
		f.Findings = append(f.Findings, toolward.Finding{
			Code: findUnlisted, Effect: toolward.EffectDeny, Detail: to.String() + " is not listed for the agent's sandboxes, and others are refused",
		})
	}
	if sent := p.spent.to(r.Call.Caller.Agent, to); most > 0 && sent >= most {
		f.Findings = append(f.Findings, toolward.Finding{
			Code: findLimit, Effect: toolward.EffectAsk,
			Detail: fmt.Sprintf("the agent's sandboxes have sent %d bytes to %s within a day, and %d may leave without a person's word", sent, to, most),
		})
	}
	if way.machine {
		f.Findings = append(f.Findings, toolward.Finding{
			Code: findMachine, Effect: toolward.EffectNote, Detail: fmt.Sprintf("it is what listens on this machine at 127.0.0.1:%d", to.port),
		})
	}
	if way.internal {
		f.Findings = append(f.Findings, inside(to, reach.Registry(to.host, to.port)))
	}
	if flight != nil {
		f.Sandbox, f.For = flight.sandbox, flight.wantedBy()
		f.Findings = append(f.Findings, wanted(f.Sandbox, f.For, flight.earlier)...)
	}
	return f, nil
}

// inside tells people that a host is a machine of their own network, and who names it.
func inside(to target, named string) toolward.Finding {
	text := to.String() + " is a machine of the own network"
	if named != "" {
		text += "; " + named + " names it as a registry of packages"
	}
	return toolward.Finding{Code: findInternal, Effect: toolward.EffectNote, Detail: text}
}

// wanted tells people which command wants the host. What an earlier command has left running there looks the same from outside: it
// could wait for one whose name people trust.
func wanted(sandbox, command string, earlier bool) []toolward.Finding {
	if command == "" {
		return []toolward.Finding{{
			Code: findWanted, Effect: toolward.EffectNote,
			Detail: "wanted by a program that runs on in the sandbox " + sandbox + " after its command has ended",
		}}
	}
	all := []toolward.Finding{{Code: findWanted, Effect: toolward.EffectNote, Detail: "wanted in the sandbox " + sandbox + " by: " + command}}
	if earlier {
		all = append(all, toolward.Finding{Code: findWanted, Effect: toolward.EffectNote, Detail: "or by something that an earlier command has left running there"})
	}
	return all
}

// bracketed is a host as it is written in a URL.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// callOf is the call of the tool in the name of one that uses the sandbox.
func (p *Proxies) callOf(by toolward.Call, to target) (toolward.Call, error) {
	raw, err := json.Marshal(arguments{to.host, to.port})
	if err != nil {
		return toolward.Call{}, err
	}
	by.Tool, by.Arguments, by.Form = ToolName, raw, p.tool
	// The program inside makes the connection, with exactly these arguments: a plug-in cannot send it elsewhere.
	by.ByClient = true
	by.Surface, by.Host = toolward.SurfaceSandbox, toolward.HostSandbox
	by.Caller.Sandboxed = true
	return by, nil
}
