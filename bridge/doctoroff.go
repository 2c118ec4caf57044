package bridge

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Besides its settings files, variables and flags of the client keep the hooks of a person's settings from running. Managed settings
// run whatever they say. Their names are in the client's row (clients.go).

// startFiles are where variables and abbreviations of a person's shells come from, below the home directory.
var startFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".config/fish/config.fish",
	".config/environment.d", ".config/fish/conf.d", ".envrc", ".config/fish/functions", ".pam_environment",
}

// switchedOff looks for what has the client start without the hooks of a person's settings: in the environment, in those settings, in
// what shells read when they start. A flag that is typed each time is seen by nobody.
func (d *doctor) switchedOff() {
	if len(d.found) == 0 || d.found[0].path == d.setup.Managed {
		return
	}
	const hint = "take it away, or install with --managed"
	for _, name := range d.setup.client.switches {
		if d.setup.Getenv != nil && isOn(d.setup.Getenv(name)) {
			d.add("shadow", Failed, hint, "%s is set here: the client runs no hooks of your settings then", name)
		}
	}
	path := filepath.Join(d.setup.directory, "settings.json")
	if data, err := os.ReadFile(path); err == nil {
		for _, name := range d.setup.client.switches {
			if strings.Contains(string(data), `"`+name+`"`) {
				d.add("shadow", Failed, hint, "%s names %s: the client may run no hooks of your settings then", path, name)
			}
		}
	}
	for _, file := range d.startFiles() {
		data, err := os.ReadFile(file)
		if err != nil || d.setup.client.starts == nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if what := d.switchIn(line); what != "" {
				d.add("shadow", Failed, hint, "%s has the client started with %s, so that it may run no hooks of your settings", file, what)
				break
			}
		}
	}
}

// startFiles are the files that there are, also in directories of such files.
func (d *doctor) startFiles() (files []string) {
	for _, name := range startFiles {
		path := filepath.Join(d.setup.Home, name)
		entries, err := os.ReadDir(path)
		if err != nil {
			files = append(files, path)
			continue
		}
		for _, e := range entries {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files
}

// switchIn is the variable or the flag that a line of a start file switches hooks off with, "" for none.
func (d *doctor) switchIn(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return ""
	}
	for _, name := range d.setup.client.switches {
		if _, value, ok := strings.Cut(line, name); ok && isOn(strings.Trim(value, ` ="';`)) {
			return name
		}
	}
	// Another directory of the client's own has settings without the hook.
	if _, value, ok := strings.Cut(line, d.setup.client.variable); ok && d.setup.client.variable != "" {
		value = strings.Trim(value, ` ="';`)
		for _, home := range []string{"~", "$HOME", "${HOME}"} {
			if rest, below := strings.CutPrefix(value, home+"/"); below {
				value = filepath.Join(d.setup.Home, rest)
			}
		}
		if value != "" && filepath.Clean(value) != d.setup.directory {
			return d.setup.client.variable
		}
	}
	return d.setup.client.starts.FindString(line)
}

func isOn(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// claudeSwitches are Claude Code's variables, and claudeStarts its flags, on a command line of the client.
var (
	claudeSwitches = []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"}
	claudeStarts   = regexp.MustCompile(`\bclaude\b[^;|&#]*\s--(?:bare|safe-mode|setting-sources|settings)\b`)
)
