package audit

import (
	"encoding/json"
	"strings"

	"github.com/toolward/toolward"
)

// keeper encodes what rules and grants decide on, so that another policy can be tried on old records without what
// people wrote. Of contents it keeps the size only.
type keeper struct {
	*cleaner
	withheld bool // something that decides was redacted, escaped, shortened or left out
}

// verbatim is cleaner.text for text that decides.
func (k *keeper) verbatim(s string, limit int) string {
	kept := k.text(s, limit)
	k.withheld = k.withheld || kept != s
	return kept
}

func (k *keeper) facts(b []byte, f *toolward.Facts, params toolward.Params) []byte {
	return object(b, "facts", func(b []byte) []byte {
		b = textField(b, "action", f.Action)
		b = k.analysis(b, f.Analysis)
		b = textField(b, "browserOn", f.BrowserOn)
		b = countField(b, "commandBytes", int64(len(f.Command)))
		b = countField(b, "deletes", int64(f.Deletes))
		b = flagField(b, "elevated", f.Elevated)
		b = k.list(b, "hosts", f.Hosts)
		b = textField(b, "listed", k.verbatim(f.Listed, detailLimit))
		b = flagField(b, "mutates", f.Mutates)
		b = sizes(b, "outboundBytes", f.Outbound)
		b = k.selected(b, params)
		b = k.list(b, "recipients", f.Recipients)
		b = textField(b, "sandbox", k.verbatim(f.Sandbox, nameLimit))
		b = textField(b, "scope", f.Scope)
		if len(f.Targets) > listLimit {
			b = intField(b, "targetCount", int64(len(f.Targets)))
			k.withheld = true
		}
		b = textField(b, "targetId", k.verbatim(f.TargetID, nameLimit))
		b = list(b, "targets", min(len(f.Targets), listLimit), func(b []byte, i int) []byte {
			return k.target(b, &f.Targets[i])
		})
		return sizes(b, "urlBytes", f.URLs)
	})
}

// analysis keeps what decides about a command; a command that nobody analyzed has none.
func (k *keeper) analysis(b []byte, a *toolward.CommandAnalysis) []byte {
	if a == nil {
		return b
	}
	return object(b, "analysis", func(b []byte) []byte {
		b = textField(b, "ask", a.Ask)
		b = flagField(b, "covered", a.Covered)
		b = textField(b, "enforced", k.text(a.Enforced, enforcedLimit))
		b = textField(b, "forbidden", k.text(a.Forbidden, detailLimit))
		b = k.list(b, "forced", a.Forced)
		b = flagField(b, "savable", len(a.Always) > 0)
		b = textField(b, "security", a.Security)
		b = flagField(b, "unanswered", a.Unanswered)
		return flagField(b, "understood", a.Understood)
	})
}

func (k *keeper) target(b []byte, t *toolward.Target) []byte {
	return element(b, func(b []byte) []byte {
		b = textField(b, "kind", string(t.Kind))
		b = flagField(b, "left", t.Left)
		if t.Links > 1 {
			b = intField(b, "links", int64(min(t.Links, 1<<53)))
		}
		b = textField(b, "op", string(t.Op))
		b = textField(b, "path", k.verbatim(t.Real, detailLimit))
		return textField(b, "place", string(t.Zone))
	})
}

func (k *keeper) list(b []byte, name string, values []string) []byte {
	k.withheld = k.withheld || len(values) > listLimit
	return list(b, name, min(len(values), listLimit), func(b []byte, i int) []byte {
		return appendText(b, k.verbatim(values[i], detailLimit))
	})
}

// selectorLimit bounds the word that is kept of one parameter, in bytes.
const selectorLimit = 64

// selected keeps the few parameters that choose the row of the class table, such as an action. They are words of the
// tool's own language; a value that is not such a word is content, and is kept as an empty mark only.
func (k *keeper) selected(b []byte, params toolward.Params) []byte {
	return object(b, "params", func(b []byte) []byte {
		for _, name := range k.selectors {
			switch value := selectedValue(params, name).(type) {
			case nil:
			case bool:
				b = boolField(b, name, value)
			case string:
				word := plainWord(value)
				if word == "" && value != "" || word != k.redact(word) {
					k.withheld, word = true, ""
				}
				b = appendText(field(b, name), word)
			case json.Number:
				b = appendText(field(b, name), plainWord(value.String()))
			default:
				b = boolField(b, name, true)
			}
		}
		return b
	})
}

// selectedValue reads a parameter, or with "a.b" the member b of the parameter a.
func selectedValue(params toolward.Params, name string) any {
	outer, inner, nested := strings.Cut(name, ".")
	if !params.Has(outer) {
		return nil
	}
	value := params.Value(outer)
	if nested {
		object, _ := value.(map[string]any)
		value = object[inner]
	}
	return value
}

// plainWord is a short word of plain characters, or "".
func plainWord(text string) string {
	if len(text) > selectorLimit {
		return ""
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_-.:/ ", rune(c)) {
			return ""
		}
	}
	return text
}

func (k *keeper) requester(b []byte, caller *toolward.Caller) []byte {
	return object(b, "requester", func(b []byte) []byte {
		b = textField(b, "account", k.verbatim(caller.Account, nameLimit))
		if len(caller.Ceiling) > ceilingLimit {
			k.withheld = true
		} else {
			b = textField(b, "ceiling", k.verbatim(string(caller.Ceiling), ceilingLimit))
		}
		b = textField(b, "channel", k.verbatim(caller.Channel, nameLimit))
		b = textField(b, "client", k.name(caller.Client))
		b = textField(b, "context", caller.Context)
		b = textField(b, "device", caller.Device)
		b = textField(b, "group", k.verbatim(caller.Group, nameLimit))
		b = textField(b, "model", k.verbatim(caller.Model, nameLimit))
		b = textField(b, "parent", k.verbatim(string(caller.Parent), detailLimit))
		b = textField(b, "provider", k.verbatim(caller.Provider, nameLimit))
		b = flagField(b, "sandboxReadOnly", caller.SandboxReadOnly)
		b = flagField(b, "sandboxed", caller.Sandboxed)
		b = textField(b, "senderId", k.verbatim(caller.Sender, nameLimit))
		b = boolField(b, "senderIsOwner", caller.Owner)
		b = textField(b, "senderName", k.verbatim(caller.SenderName, nameLimit))
		b = textField(b, "senderPhone", k.verbatim(caller.SenderPhone, nameLimit))
		b = textField(b, "senderUser", k.verbatim(caller.SenderUser, nameLimit))
		return textField(b, "workspace", k.verbatim(caller.Workspace, detailLimit))
	})
}

// ceilingLimit bounds what is kept of a parent's policies, in bytes.
const ceilingLimit = 8 << 10

func sizes(b []byte, name string, values []string) []byte {
	return list(b, name, min(len(values), listLimit), func(b []byte, i int) []byte {
		return appendInt(b, len(values[i]))
	})
}
