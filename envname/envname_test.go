package envname

import (
	"slices"
	"strings"
	"testing"
)

// No exception may take a name out that is listed by itself, in whatever case it is written.
func TestTablesHoldInAnyCase(t *testing.T) {
	for _, name := range slices.Concat(strings.Fields(neverNames), strings.Fields(fixedNames)) {
		if !Dangerous(name) || !Dangerous(strings.ToLower(name)) {
			t.Errorf("%s counts as harmless", name)
		}
	}
	for _, name := range []string{"CI", "GIT_AUTHOR_NAME", "NODE_ENV", "LANG", "USER"} {
		if Dangerous(name) {
			t.Errorf("%s counts as dangerous", name)
		}
	}
}

func TestPortable(t *testing.T) {
	for name, want := range map[string]bool{"A": true, "_a1": true, "": false, "1A": false, "A-B": false, "A=B": false, "É": false, " A": false} {
		if Portable(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
