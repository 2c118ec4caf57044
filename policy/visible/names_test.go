package visible

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, c := range []struct {
		name, tool, plugin, want string // want: part of the complaint, "" for none
	}{
		{"own", "read", "", ""},
		{"server's", "github__create_issue", "github", ""},
		{"every character", "a0_.:/-z", "p", ""},
		{"longest", strings.Repeat("a", 128), "p", ""},
		{"too long", strings.Repeat("a", 129), "p", "longer"},
		{"empty", "", "p", "empty"},
		{"core name", "read", "s1", "belongs to a tool of Toolward"},
		{"name beyond core", "list", "s1", "belongs to a tool of Toolward"},
		{"channel tool", "whatsapp_login", "s1", "belongs to a tool of Toolward"},
		{"other case", "Read", "s1", "lower-case"},
		{"trailing space", "read ", "s1", "lower-case"},
		{"NUL", "read\x00", "s1", "lower-case"},
		{"full-width letters", "\uff52\uff45\uff41\uff44", "s1", "lower-case"},
		{"object key", "constructor", "s1", "JavaScript"},
		{"object key of our own", "valueof", "", "JavaScript"},
		{"another server's", "mcp__s2__add", "s1", "mcp__"},
		{"glob", "*", "s1", "lower-case"},
		{"path", "../add", "s1", "lower-case"},
		{"path inside", "a/../b", "s1", `".."`},
		{"shell", "add;id", "s1", "lower-case"},
		{"space", "add add", "s1", "lower-case"},
		{"alias", "bash", "s1", "alias"},
		{"alias with a dash", "apply-patch", "s1", "alias"},
		{"id of a plug-in", "add", "exec", "plug-in id"},
		{"first character", "_a", "s1", "lower-case"},
		{"like a group", "group:fs", "s1", "group"},
		{"core name behind the id", "s1__read", "s1", "belongs to a tool of Toolward"},
		{"alias behind the id", "s1__bash", "s1", "belongs to a tool of Toolward"},
		{"channel tool behind the id", "s1__whatsapp_login", "s1", "belongs to a tool of Toolward"},
		{"nothing behind the id", "s1__", "s1", "empty"},
		{"client's name behind the id", "s1__mcp__s2__add", "s1", "mcp__"},
		{"object key behind the id", "s1__constructor", "s1", "JavaScript"},
		{"another object key", "s1____proto__", "s1", "lower-case"},
		{"path behind the id", "s1__/etc", "s1", "lower-case"},
		{"group behind the id", "s1__group:fs", "s1", "group"},
		{"what is no core tool", "s1__search", "s1", ""},
		{"behind another id", "s2__read", "s1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckName(c.tool, c.plugin)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCatalog(t *testing.T) {
	if n := len(CoreTools()); n != 25 {
		t.Errorf("%d core tools, want 25", n)
	}
	if n := len(ExpandGroups([]string{"group:openclaw"})); n != 19 {
		t.Errorf("group:openclaw has %d tools, want 19", n)
	}
}
