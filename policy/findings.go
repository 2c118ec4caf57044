package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/redact"
)

// Codes of findings that policy makes or knows; those about URLs are in url.go.
const (
	findPathEscape      = "path_escape"
	findPathLink        = "path_link"
	findInvisibleText   = "invisible_text"
	findGatewayOverride = "gateway_override"
	findInvalidArgs     = "invalid_args"
	findSecretShape     = "secret_shape"
	findSecretValue     = "secret_value"
	findDangerous       = "command_dangerous"
	findCommandParse    = "command_parse"
	findCommandHidden   = "command_hidden"
	findCommandInline   = "command_inline"
	findCommandCaution  = "command_caution"
	findSSRF            = "ssrf"
	findRecipientNew    = "recipient_new"
)

// gravest are findings that make the prompt critical.
func gravest(code string) bool { return code == findSecretShape || code == findDangerous }

// grave are findings that make the prompt at least a warning, whatever they do to the verdict: a command whose class is
// routine is not when it reaches beyond the workspace, or when nobody can tell what it runs.
func grave(code string) bool {
	switch code {
	case findCommandParse, findCommandHidden, findCommandInline, findCommandCaution:
		return true
	}
	return false
}

// validator is what findings depend on besides the request.
type validator struct {
	workspaceOnly bool
	acts          bool // the call does more than look; what a plug-in says about that is a claim
	around        *Surroundings
}

// findings looks at what a call would touch. The tool's own findings come first. Findings only ever raise.
func (v validator) findings(r *toolward.Request) []toolward.Finding {
	f := slices.Clip(r.Facts.Findings)
	for i := range r.Facts.Targets {
		f = v.target(f, r, &r.Facts.Targets[i])
	}
	f = v.secrets(f, &r.Facts)
	for _, u := range r.Facts.URLs {
		f = findInvisible(f, "URL", u, false)
		for _, code := range URLFindings(u) {
			effect := toolward.EffectDeny
			if code == findURLExfil {
				effect = toolward.EffectAsk
			}
			f = append(f, toolward.Finding{Code: code, Effect: effect, Detail: printable(u)})
		}
		if v.around.Addresses != nil {
			if why := v.around.Addresses.Refuses(u); why != "" {
				f = append(f, toolward.Finding{Code: findSSRF, Effect: toolward.EffectDeny, Detail: printable(u) + ": " + printable(why)})
			}
		}
	}
	f = findInvisible(f, "command", r.Facts.Command, true)
	for _, to := range r.Facts.Recipients {
		f = findInvisible(f, "recipient", to, false)
		f = v.recipient(f, r, to)
	}
	if r.Tool.Plugin == "" {
		f = v.gateway(f, r.Params)
	}
	return f
}

// recipient asks about somebody whom nobody has named: a message is the shortest way out for what an agent has read.
// Looking at a conversation sends nothing, and the present one (scope "self") is where the call came from.
func (v validator) recipient(f []toolward.Finding, r *toolward.Request, to string) []toolward.Finding {
	if !v.acts || r.Facts.Scope == "self" {
		return f
	}
	effect := toolward.EffectAsk
	if known := v.around.Recipients; known != nil {
		if known.Known(r.Call.Session, to) {
			return f
		}
		if known.Granted(&r.Call, to) {
			effect = toolward.EffectNote
		}
	}
	return append(f, toolward.Finding{Code: findRecipientNew, Effect: effect, Detail: printable(to) + " was not used by an owner in this session"})
}

// target looks at one file or directory.
func (v validator) target(f []toolward.Finding, r *toolward.Request, t *toolward.Target) []toolward.Finding {
	f = findInvisible(f, "path", t.Path, false)
	if v.workspaceOnly && escapes(t, r.Call.Caller.Workspace) {
		f = append(f, toolward.Finding{Code: findPathEscape, Effect: toolward.EffectDeny, Detail: printable(t.Real) + " is outside the workspace"})
	}
	switch t.Kind {
	case toolward.KindFile:
		if t.Links > 1 {
			// Another name of the same content may lie where writing is refused. Reading is only noted: package
			// managers hard-link whole trees.
			effect := toolward.EffectDeny
			if t.Op == toolward.OpRead {
				effect = toolward.EffectNote
			}
			f = append(f, toolward.Finding{Code: findPathLink, Effect: effect, Detail: fmt.Sprintf("%s has %d names", printable(t.Real), t.Links)})
		}
	case toolward.KindDirectory, toolward.KindMissing:
	case toolward.KindSymlink:
		if t.Op == toolward.OpDelete || t.Op == toolward.OpMove {
			return f // removing or renaming the link itself
		}
		fallthrough
	default:
		// A device, FIFO or socket reaches hardware or another program; and what was not examined may be one.
		f = append(f, toolward.Finding{Code: findPathLink, Effect: toolward.EffectDeny, Detail: printable(t.Real) + " is not a file or directory: " + printable(string(t.Kind))})
	}
	return f
}

// escapes reports whether a target is outside the workspace. A link that leads out counts even when it leads to a
// place that would be allowed by itself.
func escapes(t *toolward.Target, workspace string) bool {
	switch {
	case t.Left:
		return true
	case t.Zone == toolward.ZoneWorkspace, t.Zone == toolward.ZoneInstructions:
		return false
	case t.Zone == toolward.ZoneOutside:
		return true
	}
	return !place.Within(t.Real, workspace)
}

// secrets looks for what must not leave: secrets that the gateway holds itself, and what looks like one.
func (v validator) secrets(f []toolward.Finding, facts *toolward.Facts) []toolward.Finding {
	held, shaped := false, ""
	look := func(text string) {
		if plain := percentDecoded(text); plain != text {
			// A server undoes percent escapes; so a secret may hide behind those of single characters.
			held = held || v.around.Secrets != nil && v.around.Secrets.Holds(plain)
			if found := redact.Shapes(plain); shaped == "" && len(found) > 0 {
				shaped = found[0].Kind
			}
		}
		held = held || v.around.Secrets != nil && v.around.Secrets.Holds(text)
		if shaped != "" {
			return
		}
		if found := redact.Shapes(text); len(found) > 0 {
			shaped = found[0].Kind
		}
	}
	for _, text := range facts.Outbound {
		look(text)
	}
	for _, u := range facts.URLs {
		look(u)
	}
	if facts.Command != "" {
		look(facts.Command)
	}
	if held {
		f = append(f, toolward.Finding{Code: findSecretValue, Effect: toolward.EffectDeny, Detail: "the call would send a secret of the gateway"})
	}
	if shaped != "" {
		f = append(f, toolward.Finding{Code: findSecretShape, Effect: toolward.EffectAsk, Detail: "the call would send what looks like a secret: " + shaped})
	}
	return f
}

// gateway refuses parameters that would send a tool's own control connection to another gateway, together with the
// token it signs in with.
func (v validator) gateway(f []toolward.Finding, params toolward.Params) []toolward.Finding {
	var named []string
	for name := range params.Keys() {
		if namesGateway(name) {
			named = append(named, name)
		}
	}
	slices.Sort(named)
	for _, name := range named {
		what := strings.TrimPrefix(toolward.NormalAction(name), "gateway")
		configured := ""
		switch what {
		case "url":
			configured = v.around.GatewayURL
		case "token":
			configured = v.around.GatewayToken
		case "uri", "host", "port", "address", "endpoint", "password", "auth", "key", "secret", "apikey", "authtoken":
		default:
			continue
		}
		text, isText := params.String(name)
		if isText && (strings.TrimSpace(text) == "" || text == configured) {
			continue
		}
		f = append(f, toolward.Finding{Code: findGatewayOverride, Effect: toolward.EffectDeny, Detail: printable(name)})
	}
	return f
}

// namesGateway reports whether a parameter's name begins with "gateway" in any spelling: squashed, without making the
// squashed text for each parameter of each call.
func namesGateway(name string) bool {
	rest := "gateway"
	for _, c := range []byte(name) {
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 0x80, c >= 'a' && c <= 'z', c >= '0' && c <= '9', c < 0x20:
		default:
			continue // NormalAction drops it
		}
		if c != rest[0] {
			return false
		}
		if rest = rest[1:]; rest == "" {
			return true
		}
	}
	return false
}

// findInvisible looks for characters that make a person see something else than what is there.
func findInvisible(f []toolward.Finding, what, text string, lines bool) []toolward.Finding {
	for i, c := range text {
		if c >= 0x20 && c < 0x7f {
			continue
		}
		if display.Invisible(c) || !lines && (c == '\n' || c == '\t') {
			return append(f, toolward.Finding{
				Code: findInvisibleText, Effect: toolward.EffectAsk,
				Detail: fmt.Sprintf("%s has %U at byte %d: %s", what, c, i, printable(text)),
			})
		}
	}
	return f
}

// maxShown bounds how much of a text a detail repeats, in characters.
const maxShown = 200

// printable shows a text on one line with everything escaped that could deceive.
func printable(text string) string {
	return display.Show(text, display.Options{Limit: maxShown}).String()
}
