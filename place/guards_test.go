package place

import "testing"

// What is guarded at any depth is what the classifier calls protected there.
func TestGuardsAgreesWithTheTable(t *testing.T) {
	c, err := New(Layout{Workspace: "/w", Home: "/home/u", StateDir: "/home/u/.toolward", ConfigFile: "/home/u/.toolward/toolward.jsonc"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{
		{".git", "hooks"},
		{".git", "config"},
		{"sub", ".gitmodules"},
		{"sub", ".vscode"},
		{"x", ".envrc"},
		{".github", "workflows"},
		{".git", "objects"},
		{"git", "hooks"},
		{"x", "hooks"},
		{"x", "main.go"},
		{".github", "README.md"},
	} {
		want := c.Classify("/w/deep/"+pair[0]+"/"+pair[1]) == Protected
		if Guards(pair[0], pair[1]) != want {
			t.Errorf("%v: %v", pair, !want)
		}
	}
}
