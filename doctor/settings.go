package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
)

// outside reports whether other machines can reach the address of console and API. What cannot be understood counts
// as reachable.
func (e *examination) outside() bool {
	host, _, err := net.SplitHostPort(e.file.Server.Listen)
	if err != nil {
		return true
	}
	if strings.EqualFold(host, "localhost") {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.IsLoopback()
}

// exposure looks at what other machines reach.
func (e *examination) exposure() error {
	if e.outside() {
		e.find("gateway.control_ui.insecure_auth", "listen on 127.0.0.1 and put a reverse proxy with TLS in front; name it in server.hosts",
			"server.listen is %s: console and API are served without TLS, so whoever is on the way reads the passphrase and the tokens", e.file.Server.Listen)
		if e.answers && e.status.Setup {
			e.find("gateway.bind_no_auth", "set a passphrase: toolward login --setup CODE",
				"server.listen is %s and no passphrase has been set: whoever learns the code of the first start becomes the person who answers", e.file.Server.Listen)
		}
	}
	if reopened := e.reopened(); len(reopened) > 0 {
		severity := Warn
		if e.outside() {
			severity = Critical
		}
		e.findAs(severity, "gateway.tools_invoke_http.dangerous_allow", "remove them from gateway.tools.allow",
			"gateway.tools.allow offers %s over HTTP", strings.Join(reopened, ", "))
	}
	return nil
}

// reopened are the tools that the HTTP endpoint denies unless they are named, and that are named.
func (e *examination) reopened() []string {
	var names []string
	for _, entry := range e.file.Gateway.Tools.Allow {
		if name := visible.NormalizeName(entry); slices.Contains(visible.HTTPDenied(), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// gateway looks at settings of the gate that give up protection.
func (e *examination) gateway() error {
	t := e.file.TEG
	switch {
	case e.answers && e.status.Shadow:
		e.find("teg.shadow_mode", "set teg.mode to enforce and restart", "the running gateway observes only: calls that would ask run, and only refusals hold")
	case t.Mode == config.ModeShadow:
		e.find("teg.shadow_mode", "set teg.mode to enforce", "teg.mode is shadow: from the next start calls that would ask run, and only refusals hold")
	}
	for _, words := range e.status.Notices {
		e.find("teg.gateway_trouble", "see the log of the gateway", "%s", words)
	}
	if e.answers && e.status.Setup {
		e.find("teg.no_approver", "toolward login --setup CODE, with the code that toolward up has printed",
			"no passphrase has been set, so nobody can sign in and answer: every call that asks is refused")
	}
	flag := func(remediation, format string, args ...any) {
		e.find("config.insecure_or_dangerous_flags", remediation, format, args...)
	}
	if e.file.Config.AutoApply {
		flag("set config.autoApply to false", "config.autoApply: a changed configuration counts without anybody's answer, also one that an agent has written")
	}
	for server, m := range t.MCP {
		if m.TrustHints {
			flag("set it to false", "teg.mcp.%s.trustHints: the server itself says which of its tools only read", server)
		}
	}
	return nil
}

// policies compiles the policy and reports its warnings.
func (e *examination) policies() error {
	c := e.file.Policy()
	c.Around = e.Around
	_, warnings, err := policy.Compile(c, e.Tools)
	if err != nil {
		return fmt.Errorf("compile the policy: %w", err)
	}
	for _, w := range warnings {
		e.warning(w)
	}
	for _, a := range e.file.Agents.List {
		if p := a.Tools.Profile; e.file.Tools.Profile == "minimal" && p != "" && p != "minimal" {
			e.find("tools.profile_minimal_overridden", "remove the agent's profile, or the global one",
				"tools.profile is minimal, but agents.list[%s].tools.profile is %s", a.ID, p)
		}
	}
	return nil
}
