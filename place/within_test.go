package place

import (
	"path"
	"testing"
)

// Whoever asks decides by the answer what an agent may reach: one predicate for all, and a doubt is "no".
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		p, dir string
		want   bool
	}{
		{"/a/b", "/a/b", true},
		{"/a/b/c", "/a/b", true},
		{"/a/b/c/d", "/a/b", true},
		{"/a", "/a/b", false},
		{"/a/bc", "/a/b", false},
		{"/a/b.c", "/a/b", false},
		{"/A/b", "/a", false},

		// Nothing lies within "", which is how "no workspace" is written.
		{"/a/b", "", false},
		{"/", "", false},
		{"", "", false},
		{"", "/a", false},
		{"", "/", false},

		// Everything lies within the root.
		{"/", "/", true},
		{"/a", "/", true},
		{"/", "/a", false},
		{"//", "/", true},

		// A slash at the end says nothing.
		{"/a/b", "/a/", true},
		{"/a/", "/a", true},
		{"/a/", "/a/", true},
		{"/a", "/a/", true},
		{"/ab", "/a/", false},

		// Paths are what they mean, not what they begin with.
		{"/a/../b", "/a", false},
		{"/a/b/../../c", "/a/b", false},
		{"/a/..", "/a", false},
		{"/x/../a/b", "/a", true},
		{"/a//b", "/a/b", true},
		{"//a/b", "/a", true},
		{"/a/./b", "/a/b", true},
		{"/a/.", "/a", true},
		{"/b", "/a/../b", true},
		{"/a/c", "/a/../b", false},
		{"/../a", "/a", true},
		{"/a", "/..", true},

		// A name may begin with points.
		{"/a/..b", "/a", true},
		{"/a/...", "/a", true},
		{"/a/.git", "/a/.git", true},
		{"/a/.github", "/a/.git", false},

		// Nobody knows where a relative path is.
		{"a/b", "a", false},
		{"a", "a", false},
		{"a", "/", false},
		{"a", ".", false},
		{"/a", "a", false},
		{"/a", ".", false},
		{"./a", "/a", false},
		{"~/a", "~", false},
	} {
		if got := Within(c.p, c.dir); got != c.want {
			t.Errorf("Within(%q, %q) = %t", c.p, c.dir, got)
		}
	}
}

// The short way for clean paths says what the long one says.
func FuzzWithin(f *testing.F) {
	f.Add("/a/b", "/a")
	f.Add("/a/../b/.", "/a//")
	f.Add("/..", "")
	f.Fuzz(func(t *testing.T, p, dir string) {
		if path.IsAbs(p) && path.IsAbs(dir) {
			if got, want := Within(p, dir), Within(path.Clean(p), path.Clean(dir)); got != want {
				t.Errorf("Within(%q, %q) = %t", p, dir, got)
			}
		} else if Within(p, dir) {
			t.Errorf("Within(%q, %q): one of them is relative", p, dir)
		}
	})
}
