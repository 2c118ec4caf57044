package approval

import (
	"maps"
	"slices"

	"github.com/toolward/toolward/display"
)

// maxMisleading is how many addresses are pointed out; a call with more of them is odd enough.
const maxMisleading = 4

// misleading says where addresses in texts of a call really lead, if that is not where they seem to. An address such as
// https://bank.example@evil.example/ is read from its beginning, and its host stands behind.
func (m *Manager) misleading(values ...any) []string {
	var out []string
	var look func(v any, depth int)
	look = func(v any, depth int) {
		switch v := v.(type) {
		case string:
			for _, where := range display.MisleadingAddresses(v) {
				if where = cut(m.redact("an address "+where), maxReasonText); len(out) < maxMisleading && !slices.Contains(out, where) {
					out = append(out, where)
				}
			}
		case []any:
			for _, below := range v[:min(len(v), maxPreview)] {
				if depth < maxPreviewDeep {
					look(below, depth+1)
				}
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if depth < maxPreviewDeep {
					look(v[name], depth+1)
				}
			}
		}
	}
	for _, v := range values {
		look(v, 0)
	}
	return out
}
