package plugin

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is the section "plugins" of the configuration.
type Config struct {
	Entries    map[string]Entry `json:"entries,omitempty" jsonschema:"one entry for every plug-in, by its id"`
	Allow      []string         `json:"allow,omitempty" jsonschema:"ids of the plug-ins that are used; empty: all"`
	Deny       []string         `json:"deny,omitempty" jsonschema:"ids of plug-ins that are not used; wins over allow"`
	AllowHosts []string         `json:"allowHosts,omitempty" jsonschema:"hosts besides this machine that plug-ins of kind http may be at"`
}

// Kind is how a plug-in is reached.
type Kind string

// The kinds of plug-ins.
const (
	KindCommand  Kind = "command"  // a program, started once
	KindHTTP     Kind = "http"     // a web server
	KindCompiled Kind = "compiled" // compiled into the binary; the entry changes how it is called
)

// Entry is one plug-in.
type Entry struct {
	Enabled   *bool     `json:"enabled,omitempty" jsonschema:"whether it is used; default true"`
	Kind      Kind      `json:"kind,omitempty" jsonschema:"command, http or compiled"`
	Command   []string  `json:"command,omitempty" jsonschema:"command: absolute path of the program, and its arguments"`
	URL       string    `json:"url,omitempty" jsonschema:"http: where events are posted to"`
	SecretEnv string    `json:"secretEnv,omitempty" jsonschema:"http: environment variable of the gateway that holds the key of the signature"`
	Hooks     []Name    `json:"hooks,omitempty" jsonschema:"before_tool_call, after_tool_call or both"`
	Tools     []string  `json:"tools,omitzero" jsonschema:"only for these tools; * stands for any characters"`
	Priority  *int      `json:"priority,omitempty" jsonschema:"higher is asked first; default 0"`
	TimeoutMs *int      `json:"timeoutMs,omitempty" jsonschema:"how long an answer may take; default 15000, after a call 30000; at most 600000"`
	OnError   OnFailure `json:"onError,omitempty" jsonschema:"closed (default): a failure refuses the call; open: it counts as no objection"`
	Env       []string  `json:"env,omitempty" jsonschema:"command: names of environment variables of the gateway that the program gets, too"`
}

// Problem is one thing that is wrong in a Config.
type Problem struct {
	Key  string // path in the configuration file
	Text string // what is wrong, with the value, and what to write instead
}

func (p Problem) Error() string { return p.Key + ": " + p.Text }

// ConfigKey is the path of the wrong value.
func (p Problem) ConfigKey() string { return p.Key }

// checker collects the problems of a Config.
type checker struct {
	compiled []string // ids
	hosts    []string
	problems []Problem
}

func (c *checker) add(key, format string, args ...any) {
	c.problems = append(c.problems, Problem{key, fmt.Sprintf(format, args...)})
}

// Check returns what is wrong. It looks at nothing but the configuration itself: whether a program is there, or a host
// answers, can change at any time, and must not make a sound configuration a wrong one. compiled are the ids of the
// compiled-in plug-ins.
func (c Config) Check(compiled []string) []Problem {
	k := &checker{compiled: compiled, hosts: c.AllowHosts}
	for _, id := range slices.Sorted(maps.Keys(c.Entries)) {
		key := "plugins.entries[" + strconv.Quote(id) + "]"
		if validID(id) {
			key = "plugins.entries." + id
		} else {
			k.add(key, "%q is not an id: %s", id, idRule)
		}
		k.entry(key, id, c.Entries[id])
	}
	for name, list := range map[string][]string{"allow": c.Allow, "deny": c.Deny} {
		for i, id := range list {
			if _, known := c.Entries[id]; !known && !slices.Contains(compiled, id) {
				k.add(fmt.Sprintf("plugins.%s[%d]", name, i), "there is no plug-in %q: add it to plugins.entries, or remove it here", id)
			}
		}
	}
	for i, host := range c.AllowHosts {
		if host == "" || strings.ContainsAny(host, "/:@ *") && net.ParseIP(host) == nil {
			k.add(fmt.Sprintf("plugins.allowHosts[%d]", i), "%q is not a host name: write it without scheme, port and path, such as guard.example.org", host)
		}
	}
	return k.problems
}

func (k *checker) entry(key, id string, e Entry) {
	isCompiled := slices.Contains(k.compiled, id)
	switch {
	case isCompiled && e.Kind != KindCompiled:
		k.add(key+".kind", "%q: plug-in %s is compiled in: write compiled, or choose another id", e.Kind, id)
	case e.Kind == KindCompiled && !isCompiled:
		k.add(key+".kind", "no plug-in %s is compiled in: write command or http", id)
	case e.Kind == KindCommand:
		k.command(key, e)
	case e.Kind == KindHTTP:
		k.http(key, e)
	case e.Kind != KindCompiled:
		k.add(key+".kind", "%q: write command, http or compiled", e.Kind)
	}
	for _, f := range []struct {
		name string
		set  bool
		of   []Kind
	}{
		{"command", e.Command != nil, []Kind{KindCommand}},
		{"env", e.Env != nil, []Kind{KindCommand}},
		{"url", e.URL != "", []Kind{KindHTTP}},
		{"secretEnv", e.SecretEnv != "", []Kind{KindHTTP}},
		{"hooks", e.Hooks != nil, []Kind{KindCommand, KindHTTP}},
		{"tools", e.Tools != nil, []Kind{KindCommand, KindHTTP}},
	} {
		if f.set && !slices.Contains(f.of, e.Kind) {
			k.add(key+"."+f.name, "has no meaning for kind %q: remove it", e.Kind)
		}
	}
	if e.TimeoutMs != nil && (*e.TimeoutMs < 1 || *e.TimeoutMs > int(MaxTimeout/time.Millisecond)) {
		k.add(key+".timeoutMs", "%d is out of range: write 1 to %d", *e.TimeoutMs, MaxTimeout/time.Millisecond)
	}
	if p := e.Priority; p != nil && (*p < -1_000_000 || *p > 1_000_000) {
		k.add(key+".priority", "%d is out of range: write -1000000 to 1000000", *p)
	}
	if e.OnError != "" && e.OnError != Open && e.OnError != Closed {
		k.add(key+".onError", "%q: write closed or open", e.OnError)
	}
}

func (k *checker) command(key string, e Entry) {
	switch {
	case len(e.Command) == 0:
		k.add(key+".command", "is missing: write the absolute path of the program, and its arguments, as a list")
	case !filepath.IsAbs(e.Command[0]):
		k.add(key+".command[0]", "%q is not an absolute path: what a relative one means depends on where the gateway was started", e.Command[0])
	}
	for i, part := range e.Command {
		if strings.ContainsRune(part, 0) {
			k.add(fmt.Sprintf("%s.command[%d]", key, i), "%q contains a NUL character", part)
		}
	}
	for i, name := range e.Env {
		if !envName(name) {
			k.add(fmt.Sprintf("%s.env[%d]", key, i), "%q is not the name of a variable: write the name alone; its value is taken from the gateway's environment", name)
		}
	}
	k.outside(key, e)
}

func envName(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func (k *checker) http(key string, e Entry) {
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		k.add(key+".url", "is missing: write where events are posted to, such as http://127.0.0.1:9000/hook")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		k.add(key+".url", "%q is not an http or https address", e.URL)
	case u.User != nil || u.Fragment != "":
		k.add(key+".url", "%q has a user or a fragment: remove it; requests are signed with secretEnv", u.Redacted())
	case !loopbackName(u.Hostname()) && !slices.Contains(k.hosts, u.Hostname()):
		// A file that names any host would carry the arguments of every call there.
		k.add(key+".url", "%s is not this machine: add it to plugins.allowHosts if arguments of calls may be sent there", u.Hostname())
	case !loopbackName(u.Hostname()) && u.Scheme != "https":
		k.add(key+".url", "%q: use https for another machine", e.URL)
	}
	if !envName(e.SecretEnv) {
		k.add(key+".secretEnv", "%q: write the name of the variable that holds the key by which requests are signed", e.SecretEnv)
	}
	k.outside(key, e)
}

// loopbackName reports whether a host is this machine by its very name.
func loopbackName(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// outside checks what concerns plug-ins outside the gateway.
func (k *checker) outside(key string, e Entry) {
	if len(e.Hooks) == 0 {
		k.add(key+".hooks", "is missing or empty: write before_tool_call, after_tool_call or both")
	}
	for i, name := range e.Hooks {
		at := fmt.Sprintf("%s.hooks[%d]", key, i)
		switch {
		case name == ToolResultPersist:
			k.add(at, "%s must answer at once, so only compiled-in plug-ins can have it", name)
		case name != BeforeToolCall && name != AfterToolCall:
			k.add(at, "%q: write before_tool_call or after_tool_call", name)
		case slices.Contains(e.Hooks[:i], name):
			k.add(at, "%s stands here twice: remove one", name)
		}
	}
	if e.Tools != nil {
		if _, err := newToolList(e.Tools); err != nil {
			k.add(key+".tools", "%v", err)
		}
	}
}

// uses reports whether a plug-in is switched on.
func (c Config) uses(id string) bool {
	e, known := c.Entries[id]
	switch {
	case known && e.Enabled != nil && !*e.Enabled, slices.Contains(c.Deny, id):
		return false
	}
	return len(c.Allow) == 0 || slices.Contains(c.Allow, id)
}

// Files are the files of all programs in the configuration that this user can change: scripts, programs that are not
// the system's, and what is not there yet. An agent that could write them would answer for the guard, and one that put
// a missing one there would be started by the gateway.
func (c Config) Files() (files []string) {
	for _, id := range slices.Sorted(maps.Keys(c.Entries)) {
		for _, part := range c.Entries[id].Command {
			if !filepath.IsAbs(part) {
				continue
			}
			if info, err := os.Stat(part); err != nil || info.Mode().IsRegular() && ownedByUs(info) {
				files = append(files, part)
			}
		}
	}
	return files
}

// adjust lets the operator's entry overrule what a plug-in registered.
func (e Entry) adjust(r *registration) {
	if e.Priority != nil {
		r.priority = *e.Priority
	}
	if e.TimeoutMs != nil {
		r.timeout = time.Duration(*e.TimeoutMs) * time.Millisecond
	}
	if e.OnError != "" {
		r.onError = e.OnError
	}
}
