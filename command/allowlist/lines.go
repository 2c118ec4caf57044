package allowlist

import (
	"fmt"
	"maps"
	"slices"

	"github.com/toolward/toolward/modes"
)

// Lines are the file as people read it: the settings for all, then those of each agent and what it may run. Programs and
// agents stand in them as the file has them; whoever shows a line does so through package display.
func (f *File) Lines() []string {
	lines := []string{settingsLine("defaults", f.Defaults)}
	for _, name := range slices.Sorted(maps.Keys(f.Agents)) {
		lines = append(lines, settingsLine("agent "+name, f.Agents[name].Settings))
		for _, e := range f.Agents[name].Allowlist {
			lines = append(lines, fmt.Sprintf("    %s  %s", e.ID, e.String()))
		}
	}
	return lines
}

func settingsLine(of string, s modes.Settings) string {
	for _, field := range [][2]string{{"security", string(s.Security)}, {"ask", string(s.Ask)}, {"askFallback", string(s.AskFallback)}} {
		if field[1] != "" {
			of += "  " + field[0] + " " + field[1]
		}
	}
	if s.AutoAllowSkills != nil {
		of += fmt.Sprintf("  autoAllowSkills %v", *s.AutoAllowSkills)
	}
	return of
}
