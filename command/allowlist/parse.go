package allowlist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/modes"
	"github.com/toolward/toolward/schema"
)

// Parse reads the content of exec-approvals.json and puts it into its usual form. An error means that the file is
// corrupt and must refuse every command; nothing that would loosen is guessed. Problems are what was left out because it
// is not known or not valid, each with its place in the file.
func Parse(content []byte) (file *File, problems []string, err error) {
	p := parser{}
	file, err = p.file(content)
	return file, p.problems, err
}

// ParseStrict reads content that a person or program wants to put into force: unlike [Parse] it refuses whatever would
// be left out.
func ParseStrict(content []byte) (*File, error) {
	p := parser{}
	file, err := p.file(content)
	if err != nil {
		return nil, err
	}
	p.words(file)
	if len(p.problems) > 0 {
		slices.Sort(p.problems)
		return nil, errors.New(strings.Join(p.problems, "; "))
	}
	return file, nil
}

type parser struct{ problems []string }

func (p *parser) problem(at, format string, args ...any) {
	p.problems = append(p.problems, at+": "+fmt.Sprintf(format, args...))
}

// file reads strictly what JSON leaves open: a name that stands twice, or differs from a known one in case, could be a
// denial to one reader and nothing to another.
func (p *parser) file(content []byte) (*File, error) {
	canonical, err := schema.Canonicalize(content)
	if err != nil {
		return nil, fmt.Errorf("not usable JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(canonical))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("not usable JSON: %w", err)
	}
	top, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	if version, ok := number(top["version"]); !ok || version != 1 {
		return nil, errors.New(`"version" is not 1`)
	}
	p.unknown("", top, "version", "socket", "defaults", "agents")
	file := &File{Agents: map[string]*AgentFile{}}
	p.socket(top["socket"], file)
	defaults, err := section("defaults", top["defaults"])
	if err != nil {
		return nil, err
	}
	p.unknown("defaults", defaults, settingNames...)
	file.Defaults = p.settings("defaults", defaults)
	return file, p.agents(top["agents"], file)
}

func (p *parser) agents(value any, file *File) error {
	agents, err := section("agents", value)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		at := "agents." + name
		content, err := section(at, agents[name])
		if err != nil {
			return err
		}
		p.unknown(at, content, append([]string{"allowlist"}, settingNames...)...)
		file.Agents[name] = &AgentFile{Settings: p.settings(at, content), Allowlist: p.entries(at+".allowlist", content["allowlist"])}
	}
	mergeDefaultAgent(file)
	return nil
}

// section is an object that may be missing. Anything else there makes the file corrupt: it may have been a denial.
func section(at string, value any) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%q is not an object", at)
	}
	return object, nil
}

func (p *parser) unknown(at string, object map[string]any, known ...string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(known, name) {
			p.problem(strings.TrimPrefix(at+"."+name, "."), "unknown key")
		}
	}
}

func (p *parser) socket(value any, file *File) {
	socket, err := section("socket", value)
	if err != nil {
		p.problem("socket", "is not an object")
	}
	p.unknown("socket", socket, "path", "token")
	file.Socket = Socket{p.trimmed("socket", socket, "path"), Token(p.trimmed("socket", socket, "token"))}
}

func (p *parser) trimmed(at string, object map[string]any, name string) string {
	text, ok := object[name].(string)
	if object[name] != nil && !ok {
		p.problem(at+"."+name, "is not a text")
	}
	return strings.TrimSpace(text)
}

var settingNames = []string{"security", "ask", "askFallback", "autoAllowSkills"}

func (p *parser) settings(at string, object map[string]any) modes.Settings {
	s := modes.Settings{
		Security: modes.Security(modeWord(object, "security")), Ask: modes.Ask(modeWord(object, "ask")),
		AskFallback: modes.Fallback(modeWord(object, "askFallback")),
	}
	if value, there := object["autoAllowSkills"]; there {
		allow, ok := value.(bool)
		if !ok {
			p.problem(at+".autoAllowSkills", "is neither true nor false")
		}
		s.AutoAllowSkills = &allow
	}
	return s
}

// modeWord keeps a word that is no mode, so that it closes and stays in the file as it was. What is no text at all
// closes as well.
func modeWord(object map[string]any, name string) string {
	value, there := object[name]
	text, ok := value.(string)
	switch {
	case !there:
		return ""
	case !ok || text == "":
		return "(invalid)"
	}
	return text
}

// words finds modes that are not known.
func (p *parser) words(file *File) {
	p.modes("defaults", file.Defaults)
	for name, a := range file.Agents {
		p.modes("agents."+name, a.Settings)
	}
}

func (p *parser) modes(at string, s modes.Settings) {
	check := func(name, value, choices string, ok bool) {
		if value != "" && !ok {
			p.problem(at+"."+name, "%q is none of %s", value, choices)
		}
	}
	check("security", string(s.Security), modes.Choices(modes.Securities()), slices.Contains(modes.Securities(), s.Security))
	check("ask", string(s.Ask), modes.Choices(modes.Asks()), slices.Contains(modes.Asks(), s.Ask))
	check("askFallback", string(s.AskFallback), modes.Choices(modes.Fallbacks()), slices.Contains(modes.Fallbacks(), s.AskFallback))
}

func (p *parser) entries(at string, value any) []Entry {
	list, ok := value.([]any)
	if value != nil && !ok {
		p.problem(at, "is not a list")
	}
	var entries []Entry
	for i, item := range list {
		if e, ok := p.entry(fmt.Sprintf("%s[%d]", at, i), item); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// entry reads one entry. One whose restrictions are not understood is left out: without them it would allow more than
// its owner wrote.
func (p *parser) entry(at string, item any) (e Entry, ok bool) {
	if text, ok := item.(string); ok {
		item = map[string]any{"pattern": text}
	}
	object, ok := item.(map[string]any)
	if !ok {
		p.problem(at, "is neither a text nor an object")
		return e, false
	}
	p.unknown(at, object, "id", "pattern", "effects", "argv", "host", "argPattern", "givenBy", "lastUsedAt", "lastUsedCommand", "lastResolvedPath")
	if e.Pattern = p.trimmed(at, object, "pattern"); e.Pattern == "" {
		p.problem(at, "has no pattern")
		return e, false
	}
	var okEffects, okArgv bool
	e.Effects, okEffects = texts(object, "effects")
	e.Argv, okArgv = texts(object, "argv")
	if _, there := object["argv"]; there && len(e.Argv) == 0 {
		okArgv = false
	}
	unknownEffect := slices.ContainsFunc(e.Effects, func(effect string) bool { return !slices.Contains(entryEffects, effect) })
	if !okEffects || unknownEffect {
		p.problem(at+".effects", "is not a list of %s; the entry is left out", strings.Join(entryEffects, ", "))
		return e, false
	}
	if !okArgv {
		p.problem(at+".argv", "is not a list of texts; the entry is left out")
		return e, false
	}
	if value, there := object["host"]; there && value != OnMachine {
		p.problem(at+".host", "is not %q; the entry is left out", OnMachine)
		return e, false
	} else if there {
		e.Host = OnMachine
	}
	if value, there := object["argPattern"]; there {
		text, _ := value.(string)
		e.ArgPattern = cmp.Or(text, "(invalid)")
		p.problem(at+".argPattern", "is a restriction of another tool; the entry covers nothing here, use argv instead")
	}
	if e.ID = p.trimmed(at, object, "id"); e.ID == "" {
		e.ID = newID()
	}
	e.GivenBy = p.trimmed(at, object, "givenBy")
	e.LastUsedCommand, e.LastResolvedPath = p.trimmed(at, object, "lastUsedCommand"), p.trimmed(at, object, "lastResolvedPath")
	if used, ok := number(object["lastUsedAt"]); ok && used >= 0 && used < 1<<53 {
		e.LastUsedAt = int64(used)
	} else if object["lastUsedAt"] != nil {
		p.problem(at+".lastUsedAt", "is not a time in milliseconds")
	}
	return e, true
}

// texts is a list of texts that may be missing.
func texts(object map[string]any, name string) (list []string, ok bool) {
	value, there := object[name]
	if !there {
		return nil, true
	}
	items, ok := value.([]any)
	list = []string{}
	for _, item := range items {
		text, isText := item.(string)
		ok = ok && isText
		list = append(list, text)
	}
	return list, ok
}

func number(value any) (float64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// mergeDefaultAgent moves what an older form of the file keeps under "default" to "main", whose own settings win.
func mergeDefaultAgent(file *File) {
	old := file.Agents[defaultAgent]
	if old == nil {
		return
	}
	delete(file.Agents, defaultAgent)
	a := file.agent(MainAgent)
	a.Settings = a.Settings.Over(old.Settings)
	var merged []Entry
	listed := map[string]bool{}
	for _, e := range slices.Concat(a.Allowlist, old.Allowlist) {
		key := strings.ToLower(e.Pattern) + "\x00" + strings.Join(e.Argv, "\x00") + "\x00" + e.ArgPattern
		if !listed[key] {
			listed[key] = true
			merged = append(merged, e)
		}
	}
	a.Allowlist = merged
}
