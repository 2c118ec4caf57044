package audit

import (
	"encoding/json"
	"strings"

	"github.com/toolward/toolward"
)

// keeper keeps what rules and grants decide on, so that another policy can be tried on old records without what
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

func (k *keeper) facts(used *keptFacts, f *toolward.Facts, params toolward.Params) keptFacts {
	kept := keptFacts{
		Action:        f.Action,
		Analysis:      k.analysis(f.Analysis),
		BrowserOn:     f.BrowserOn,
		CommandBytes:  len(f.Command),
		Deletes:       f.Deletes,
		Elevated:      f.Elevated,
		HostWhy:       k.text(f.HostWhy, detailLimit),
		Hosts:         k.list(used.Hosts[:0], f.Hosts),
		Listed:        k.verbatim(f.Listed, detailLimit),
		Mutates:       f.Mutates,
		OutboundBytes: sizes(used.OutboundBytes[:0], f.Outbound),
		Params:        k.selected(used.Params[:0], params),
		Recipients:    k.list(used.Recipients[:0], f.Recipients),
		Sandbox:       k.verbatim(f.Sandbox, nameLimit),
		Scope:         f.Scope,
		TargetID:      k.verbatim(f.TargetID, nameLimit),
		Targets:       k.targets(used.Targets[:0], f.Targets),
		URLBytes:      sizes(used.URLBytes[:0], f.URLs),
	}
	if len(f.Targets) > listLimit {
		kept.TargetCount, k.withheld = len(f.Targets), true
	}
	return kept
}

// analysis keeps what decides about a command; a command that nobody analyzed has none.
func (k *keeper) analysis(a *toolward.CommandAnalysis) *keptAnalysis {
	if a == nil {
		return nil
	}
	return &keptAnalysis{
		Ask: a.Ask, Contained: a.Contained, Covered: a.Covered, Enforced: k.text(a.Enforced, enforcedLimit), Forbidden: k.text(a.Forbidden, detailLimit),
		Forced: k.list(nil, a.Findings), Savable: len(a.Always) > 0, Security: a.Security, Unanswered: a.Unanswered,
		Understood: a.Understood,
	}
}

func (k *keeper) targets(kept []keptTarget, all []toolward.Target) []keptTarget {
	for i := range bounded(all) {
		t := &all[i]
		target := keptTarget{Kind: t.Kind, Left: t.Left, Op: t.Op, Path: k.verbatim(t.Real, detailLimit), Zone: t.Zone}
		if t.Links > 1 {
			target.Links = min(t.Links, 1<<53)
		}
		kept = append(kept, target)
	}
	return kept
}

func (k *keeper) list(kept, all []string) []string {
	k.withheld = k.withheld || len(all) > listLimit
	for _, text := range bounded(all) {
		kept = append(kept, k.verbatim(text, detailLimit))
	}
	return kept
}

// selectorLimit bounds the word that is kept of one parameter, in bytes.
const selectorLimit = 64

// selected keeps the few parameters that choose the row of the class table, such as an action. They are words of the
// tool's own language; a value that is not such a word is content, and is kept as an empty mark only.
func (k *keeper) selected(kept keptParams, params toolward.Params) keptParams {
	for _, name := range k.selectors {
		switch value := selectedValue(params, name).(type) {
		case nil:
		case bool:
			kept = append(kept, keptParam{name, value})
		case string:
			word := plainWord(value)
			if word == "" && value != "" || word != k.redact(word) {
				k.withheld, word = true, ""
			}
			kept = append(kept, keptParam{name, word})
		case json.Number:
			kept = append(kept, keptParam{name, plainWord(value.String())})
		default:
			kept = append(kept, keptParam{name, true})
		}
	}
	return kept
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

func (k *keeper) requester(caller *toolward.Caller) keptRequester {
	kept := keptRequester{
		Account:         k.verbatim(caller.Account, nameLimit),
		Channel:         k.verbatim(caller.Channel, nameLimit),
		Client:          k.name(caller.Client),
		Context:         caller.Context,
		Device:          caller.Device,
		Group:           k.verbatim(caller.Group, nameLimit),
		Model:           k.verbatim(caller.Model, nameLimit),
		Parent:          toolward.SessionKey(k.verbatim(string(caller.Parent), detailLimit)),
		Provider:        k.verbatim(caller.Provider, nameLimit),
		SandboxReadOnly: caller.SandboxReadOnly,
		Sandboxed:       caller.Sandboxed,
		SenderID:        k.verbatim(caller.Sender, nameLimit),
		SenderIsOwner:   caller.Owner,
		SenderName:      k.verbatim(caller.SenderName, nameLimit),
		SenderPhone:     k.verbatim(caller.SenderPhone, nameLimit),
		SenderUser:      k.verbatim(caller.SenderUser, nameLimit),
		Workspace:       k.verbatim(caller.Workspace, detailLimit),
	}
	if len(caller.Ceiling) > ceilingLimit {
		k.withheld = true
	} else {
		kept.Ceiling = toolward.Ceiling(k.verbatim(string(caller.Ceiling), ceilingLimit))
	}
	return kept
}

// ceilingLimit bounds what is kept of a parent's policies, in bytes.
const ceilingLimit = 8 << 10

func sizes(kept []int, texts []string) []int {
	for _, text := range bounded(texts) {
		kept = append(kept, len(text))
	}
	return kept
}
