package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward/modes"
)

// Host says where a command runs.
type Host string

// The hosts.
const (
	HostSandbox Host = "sandbox"
	HostGateway Host = "gateway" // this machine
	HostNode    Host = "node"    // another machine, which has rules of its own
)

var hosts = []Host{HostSandbox, HostGateway, HostNode}

// HostError says why a command has no place to run.
type HostError struct{ Code, Text string }

func (e *HostError) Error() string { return e.Code + ": " + e.Text }

// The codes of HostError.
const (
	CodeInvalidHost          = "invalid-host"
	CodeInvalidSecurity      = "invalid-security"
	CodeInvalidAsk           = "invalid-ask"
	CodeHostNotAllowed       = "host-not-allowed"
	CodeSandboxUnavailable   = "sandbox-unavailable"
	CodeElevatedUnavailable  = "elevated-unavailable"
	CodeDeniedByApprovalFile = "denied-by-approvals-file"
)

// HostConfig is what the configuration, with a session's overrides over it, says about the place of commands.
type HostConfig struct {
	Host             Host // "": the sandbox if there is one, else the gateway
	SandboxAvailable bool
	// FileModes are the settings of exec-approvals.json for the agent, as [Snapshot.Settings] gives them.
	FileModes modes.Settings
	Elevation Elevation
}

// HostParams are the parameters of one call. They can only tighten.
type HostParams struct {
	Host, Security, Ask string
	Elevated            *bool
	// Machine: the call asks for the machine, where it would run in a sandbox. It gets the machine's rules with it, so there
	// is nothing to be won by asking; a configuration that names the host has the last word.
	Machine bool
}

// Place is where a command runs. What its modes make of it there is for [modes.Judge] alone to say.
type Place struct {
	Host     Host
	Elevated ElevatedLevel
}

// Choose decides where a command runs. The error is a *[HostError]; nothing runs then.
func Choose(config HostConfig, params HostParams) (Place, error) {
	asked, err := params.read()
	if err != nil {
		return Place{}, err
	}
	level, err := config.Elevation.level(params.Elevated)
	if err != nil {
		return Place{}, err
	}
	host, err := config.host(asked.host, params.Machine, level)
	if err != nil {
		return Place{}, err
	}
	if host == HostSandbox {
		return Place{Host: host}, nil
	}
	if level == ElevatedFull && config.FileModes.Security.Denies() {
		// The owner's "deny" in the file is the last word: not even an elevated session gets past it.
		return Place{}, &HostError{CodeDeniedByApprovalFile, "exec-approvals.json denies all commands of this agent"}
	}
	return Place{Host: host, Elevated: level}, nil
}

type askedFor struct {
	host     Host
	security modes.Security
	ask      modes.Ask
}

func (p HostParams) read() (asked askedFor, err error) {
	if asked.host, err = word(hosts, CodeInvalidHost, p.Host); err != nil {
		return asked, err
	}
	if asked.security, err = word(modes.Securities(), CodeInvalidSecurity, p.Security); err != nil {
		return asked, err
	}
	asked.ask, err = word(modes.Asks(), CodeInvalidAsk, p.Ask)
	return asked, err
}

// host is where the command runs. A call may name the configured place and no other: whoever chooses the place chooses
// the rules.
func (c HostConfig) host(asked Host, machine bool, level ElevatedLevel) (Host, error) {
	configured := c.Host
	switch {
	case configured != "" && !slices.Contains(hosts, configured):
		return "", &HostError{CodeInvalidHost, fmt.Sprintf("the configured host %q is none of %s", configured, modes.Choices(hosts))}
	case configured == "" && (c.SandboxAvailable && !machine || asked == HostSandbox):
		configured = HostSandbox
	case configured == "":
		// Without a sandbox commands go through questions and the allowlist, never past them.
		configured = HostGateway
	}
	if level != ElevatedOff {
		return HostGateway, nil
	}
	if asked != "" && asked != configured {
		return "", &HostError{CodeHostNotAllowed, fmt.Sprintf("commands run on %q here; a call cannot choose %q", configured, asked)}
	}
	if configured == HostSandbox && !c.SandboxAvailable {
		return "", &HostError{CodeSandboxUnavailable, "there is no sandbox, and the command must not run without one"}
	}
	return configured, nil
}

// ElevatedLevel says how far a session's commands leave the usual place. No level takes a question away: every elevated
// command asks. "" is off.
type ElevatedLevel string

// The levels.
const (
	ElevatedOff  ElevatedLevel = ""
	ElevatedAsk  ElevatedLevel = "ask"  // on the gateway, with its policy
	ElevatedFull ElevatedLevel = "full" // the same; a file that denies all commands refuses it by name
)

// Elevation is what elevated commands of a session need.
type Elevation struct {
	FailedGates []string // names of the settings that do not let the session; none: it may
	Level       string   // of the session: off, on, ask or full; "on" is "ask", what is not known is off
}

// ParseElevatedLevel reads the level of a session or of the configuration.
func ParseElevatedLevel(text string) (ElevatedLevel, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "off":
		return ElevatedOff, nil
	case "on", "ask":
		return ElevatedAsk, nil
	case "full":
		return ElevatedFull, nil
	}
	return ElevatedOff, fmt.Errorf("invalid level %q: use off, on, ask or full", text)
}

// level is the one in force for a call. A level of the session counts only while all gates are open; asking for it
// in vain is an error that names them.
func (e Elevation) level(asked *bool) (ElevatedLevel, error) {
	level, err := ParseElevatedLevel(e.Level)
	if err != nil {
		level = ElevatedOff
	}
	switch {
	case asked != nil && !*asked:
		return ElevatedOff, nil
	case len(e.FailedGates) > 0 && asked != nil:
		return ElevatedOff, &HostError{CodeElevatedUnavailable, "elevated commands are not allowed by " + strings.Join(e.FailedGates, ", ")}
	case len(e.FailedGates) > 0:
		return ElevatedOff, nil
	case asked != nil && level == ElevatedOff:
		return ElevatedAsk, nil
	}
	return level, nil
}

// word reads a parameter of a call or of a person: trimmed, in any case. "" stands for not given.
func word[W ~string](words []W, code, text string) (W, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" || slices.Contains(words, W(text)) {
		return W(text), nil
	}
	return words[0], &HostError{Code: code, Text: fmt.Sprintf("%q is none of %s", text, modes.Choices(words))}
}
