package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/glob"
)

// warnUnknown reports entries of a list that match nothing there is: probably a slip of the pen, and in a deny list
// a restriction that does not restrict.
func (b *builder) warnUnknown(entries []string, at Path, label string) {
	for i, raw := range entries {
		entry := NormalizeName(raw)
		if entry == "" || b.matchesAnything(entry) {
			continue
		}
		b.warn(Warning{
			Path: at.At(i), Code: CheckUnknownEntries,
			Text: fmt.Sprintf("%s: %q matches no tool, group or plug-in%s", label, raw, didYouMean(entry, b.knownNames())),
		})
	}
}

// noteUnavailable reports the tools of Toolward that a scope allows by name and that are not there. The entries are known,
// so that the list stays a restriction; they bring nothing yet.
func (b *builder) noteUnavailable(entries []string, at Path, label string) {
	var missing []string
	for _, raw := range entries {
		name := NormalizeName(raw)
		if reserved(name) && !isInternal(name) && b.snapshot.tools[name] == nil && !slices.Contains(b.config.Around.ClientTools, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		b.note(Warning{Path: at, Code: CheckUnavailableTools, Text: label + ": allows tools that are not available here: " + strings.Join(missing, ", ")})
	}
}

func (b *builder) matchesAnything(entry string) bool {
	if _, isGroup := group(entry); isGroup || entry == pluginsGroup || b.plugins[entry] || b.isChannel(entry) {
		return true
	}
	if !glob.Is(entry) {
		return b.knows(entry)
	}
	return slices.ContainsFunc(b.knownNames(), func(name string) bool { return glob.Match(entry, name) })
}

func (b *builder) knows(name string) bool {
	return b.snapshot.tools[name] != nil || reserved(name) || slices.Contains(b.config.Around.ClientTools, name)
}

func (b *builder) knownNames() []string {
	names := slices.Concat(CoreTools(), beyondCore[:], channelTools[:], groupNames(), b.config.Around.ClientTools)
	for _, t := range b.sorted {
		names = append(names, t.Name)
	}
	for id := range b.plugins {
		names = append(names, id)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// warnOverrides says which overrides do not do what they seem to say, and which loosen.
func (b *builder) warnOverrides(o *overrides, at Path) {
	for _, g := range o.globs {
		if g.class == toolward.Safe {
			b.warn(Warning{
				Path: at.At(g.key), Code: CheckGlobLoosens,
				Text: fmt.Sprintf("%q cannot make a call safer: name the tool, or the tool and action", g.key),
			})
		}
	}
	for _, tool := range sortedKeys(o.byTool) {
		t := o.byTool[tool]
		if t.tool != nil {
			b.warnOverride(tool, t.tool, at)
		}
		for _, action := range sortedKeys(t.actions) {
			b.warnOverride(tool, t.actions[action], at)
		}
	}
}

func (b *builder) warnOverride(tool string, o *override, at Path) {
	at = at.At(o.key)
	if !b.knows(tool) {
		b.warn(Warning{Path: at, Code: CheckUnknownEntries, Text: fmt.Sprintf("no tool is called %q%s", tool, didYouMean(tool, b.knownNames()))})
		return
	}
	if o.class == toolward.Blocked {
		return
	}
	for _, r := range b.rowsOf(tool, o) {
		switch changed, warning := o.apply(r.Classification); {
		case warning == warnNameTheAction:
			b.warn(Warning{Path: at, Code: CheckNameTheAction, Text: fmt.Sprintf("%q does not make %s safer, which is critical: name the action", o.key, r.name)})
		case changed.Class > r.Class:
			b.loosened(tool, Warning{Path: at, Code: CheckLoosened, Text: r.name + " runs without a question at level normal"})
		}
	}
}

// loosened reports what runs without a question because the operator says so. Commands, messages, other machines and every
// host on the internet are where most harm is done.
func (b *builder) loosened(tool string, w Warning) {
	switch tool {
	case "exec", "message", "nodes", EgressTool:
		b.alarm(w)
	default:
		b.warn(w)
	}
}

// rowsOf lists the rows that an override concerns.
func (b *builder) rowsOf(tool string, o *override) []row {
	of, known := b.snapshot.table[tool]
	switch {
	case !known:
		return []row{unknownTool}
	case o.kind != byAction:
		return of.rows
	}
	action, _, _ := strings.Cut(o.action, ":")
	return slices.DeleteFunc(slices.Clone(of.rows), func(r row) bool {
		return r.actions != nil && !slices.Contains(r.actions, action)
	})
}

// hostKey brings an entry of teg.web.allowHosts to the form of toolward.Facts.Hosts: scheme://host:port.
func hostKey(entry string) (string, error) {
	text := strings.ToLower(strings.TrimSpace(entry))
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return "", fmt.Errorf("%q is not a host; write example.org or https://example.org:8443", entry)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q: only http and https hosts can be allowed", entry)
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%q: only a host and a port count here, not a path or a user", entry)
	case strings.ContainsAny(u.Host, "*?"):
		return "", fmt.Errorf("%q: hosts are not patterns; write each one", entry)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + ":" + port, nil
}
