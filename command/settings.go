package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

func (e SettingError) Error() string { return "tools." + e.Key + ": " + e.Text }

// Check reports everything that is wrong in a section tools.exec.
func (c *Config) Check() []SettingError {
	var errs settingErrors
	switch c.Host {
	case "", HostGateway, HostSandbox:
	case HostNode:
		errs.add("exec.host", "there are no nodes: write gateway or sandbox")
	default:
		errs.add("exec.host", "%q: write gateway or sandbox", c.Host)
	}
	if _, err := ParsePreset(string(c.Preset)); err != nil {
		errs.add("exec.preset", "%q: write strict or developer", c.Preset)
	}
	for i := range c.Rules {
		c.Rules[i].check(fmt.Sprintf("exec.rules[%d].", i), &errs)
	}
	for i, name := range c.SafeBins {
		checkSafeBinName(fmt.Sprintf("exec.safeBins[%d]", i), name, &errs)
	}
	for _, name := range slices.Sorted(maps.Keys(c.SafeBinProfiles)) {
		profile, key := c.SafeBinProfiles[name], "exec.safeBinProfiles"+memberKey(name)
		checkSafeBinName(key, name, &errs)
		profile.check(key+".", &errs)
	}
	for i, dir := range c.SafeBinTrustedDirs {
		if !path.IsAbs(dir) {
			errs.add(fmt.Sprintf("exec.safeBinTrustedDirs[%d]", i), "%q is not an absolute path", dir)
		}
	}
	return errs
}

func (r *Rule) check(at string, errs *settingErrors) {
	if len(r.Prefix) == 0 {
		errs.add(at+"prefix", "name at least the program")
		return
	}
	for i, words := range r.Prefix {
		switch key := fmt.Sprintf("%sprefix[%d]", at, i); {
		case len(words) == 0 || i == 0 && slices.Contains(words, ""):
			errs.add(key, "a word is missing: write one, or a list of alternatives")
		case i == 0 && slices.ContainsFunc(words, severalWords):
			errs.add(key, "%q is more than the program: write each word by itself, such as [\"git\", \"push\"]", strings.Join(words, "|"))
		}
	}
	if !slices.Contains([]Decision{Forbidden, Prompt, Allow}, r.Decision) {
		errs.add(at+"decision", "%q: write allow, prompt or forbidden", r.Decision)
	}
	for i, example := range r.Match {
		if ok, err := r.covers(example); err != nil || !ok {
			errs.add(fmt.Sprintf("%smatch[%d]", at, i), "the rule does not cover %q%s", example, because(err))
		}
	}
	for i, example := range r.NotMatch {
		if ok, err := r.covers(example); err != nil || ok {
			errs.add(fmt.Sprintf("%snotMatch[%d]", at, i), "%s", uncovered(example, err))
		}
	}
}

func severalWords(word string) bool {
	return strings.ContainsAny(word, " \t\n") && !strings.Contains(word, "/")
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

func uncovered(example string, err error) string {
	if err == nil {
		return fmt.Sprintf("the rule covers %q", example)
	}
	return fmt.Sprintf("it cannot be told whether the rule covers %q: %v", example, err)
}

// covers reports whether any command of an example begins with the prefix.
func (r *Rule) covers(example string) (bool, error) {
	command, err := shell.Analyze(example)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(command.Segments, func(s shell.Segment) bool { return r.begins(s.Argv(), nil) }), nil
}

func checkSafeBinName(key, name string, errs *settingErrors) {
	if name == "" || strings.ContainsAny(name, "/ \t\n") {
		errs.add(key, "%q is not the name of a program: write it without its directory", name)
	}
}

func (b *SafeBin) check(at string, errs *settingErrors) {
	if b.MinPositional < 0 {
		errs.add(at+"minPositional", "%d is below zero", b.MinPositional)
	}
	if b.MaxPositional < b.MinPositional {
		errs.add(at+"maxPositional", "%d is below minPositional, which is %d", b.MaxPositional, b.MinPositional)
	}
	seen := map[string]string{}
	for _, list := range []struct {
		key   string
		flags []string
	}{{"allowedFlags", b.AllowedFlags}, {"allowedValueFlags", b.AllowedValueFlags}, {"deniedFlags", b.DeniedFlags}} {
		for i, flag := range list.flags {
			key := fmt.Sprintf("%s%s[%d]", at, list.key, i)
			switch other, twice := seen[flag]; {
			case !isFlag(flag):
				errs.add(key, "%q is no option: write -x or --name", flag)
			case twice && other != list.key:
				errs.add(key, "%q stands in %s, too: keep one of them", flag, other)
			}
			seen[flag] = list.key
		}
	}
}

// isFlag reports whether a word is an option as arguments are compared with: one letter, or a long name.
func isFlag(word string) bool {
	long, ok := strings.CutPrefix(word, "--")
	if ok {
		return long != "" && !strings.ContainsAny(long, "= \t\n")
	}
	return len(word) == 2 && word[0] == '-' && word[1] > ' ' && word[1] < 0x7f
}

// Check reports what is wrong in a section tools.elevated.
func (c *ElevatedConfig) Check() []SettingError {
	var errs settingErrors
	if c == nil {
		return nil
	}
	for _, channel := range slices.Sorted(maps.Keys(c.AllowFrom)) {
		for i, entry := range c.AllowFrom[channel] {
			key := fmt.Sprintf("elevated.allowFrom%s[%d]", memberKey(channel), i)
			switch {
			case strings.TrimSpace(entry) == "":
				errs.add(key, "it is empty: write an id, a phone number, id:…, e164:…, username:…, name:… or *")
			case strings.HasPrefix(strings.TrimSpace(entry), "tag:"):
				errs.add(key, "%q: tags of senders are not known here; write an id", entry)
			}
		}
	}
	return errs
}

// UnmarshalJSON reads a word, or a list of words.
func (a *Alternatives) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*a = Alternatives{""}
		return json.Unmarshal(text, &(*a)[0])
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// MarshalJSON writes a single word as such.
func (a Alternatives) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}
