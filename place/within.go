package place

import (
	"path"
	"strings"
)

// Within reports whether p is dir or lies below it, by whole elements: /a/bc is not within /a/b. Both are absolute; "." and ".."
// count as what they mean in the text, so that /a/../b is not within /a, and links are not followed.
//
// Nothing lies within "", and neither a relative path nor a relative directory is within anything: nobody knows where it is. So a
// true answer may allow. A caller to whom false allows ("not among the secrets") must know that both are absolute.
func Within(p, dir string) bool {
	if p == "" || p[0] != '/' || dir == "" || dir[0] != '/' {
		return false
	}
	if unclean(p) {
		p = path.Clean(p)
	}
	if unclean(dir) {
		dir = path.Clean(dir)
	}
	return below(p, dir)
}

// below is Within for what is clean and absolute already, as the parts of a [Classifier] are; nothing is below "".
func below(p, dir string) bool {
	if dir == "/" {
		return p != "" && p[0] == '/'
	}
	return dir != "" && strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// unclean reports whether an absolute path may be another than its clean form. It is also true for names that begin with a dot:
// path.Clean leaves those as they are.
func unclean(p string) bool {
	return len(p) > 1 && p[len(p)-1] == '/' || strings.Contains(p, "//") || strings.Contains(p, "/.")
}
