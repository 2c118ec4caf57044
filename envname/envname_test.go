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

// Names that no table has say what they do by their end.
func TestRuns(t *testing.T) {
	for _, given := range []string{
		"ESBUILD_BINARY_PATH=./x", "PRISMA_QUERY_ENGINE_BINARY=x", "CHROME_PATH=./chrome", "CHROME_EXECUTABLE=x", "foo_cmd=id", "REACT_FOO_COMMAND=sh -c id", "X_SHELL=/ws/x",
		"ACME_HELPER=acme", "ACME_PLUGINS=./p", "ACME_PLUGIN_DIR=p", "ACME_FLAGS=-fplugin=./x.so", "ACME_FLAGS=-rx.rb", "ACME_OPTIONS=--require=x", "ACME_ARGS=--config @x",
		"ACME_PATH=.", "ACME_PATH=/usr/lib:../x", "ACME_PATH=~/x", "ACME_PATH=/tmp/x", "ACME_PATH=/usr/../tmp", "ACME_RUNNER=./x",
	} {
		if name, value, _ := strings.Cut(given, "="); !Runs(name, value) && !Dangerous(name) {
			t.Errorf("%s is harmless", given)
		}
	}
	for _, given := range []string{
		"CI=1", "ACME_SHELL=", "ACME_SHELL=true", "USE_COMMAND=0", "ACME_FLAGS=-v", "ACME_FLAGS=-vv --verbose --jobs=4 --depth 3", "ACME_PATH=/usr/lib/acme", "ACME_PATH=plain",
		"DATABASE_URL=postgres://localhost/x", "BASE_PATH=/usr/share", "NODE_ENV=production", "PORT=3000", "OUTPUT_DIR=dist", "LOG_LEVEL=debug",
	} {
		if name, value, _ := strings.Cut(given, "="); Runs(name, value) {
			t.Errorf("%s is taken for a program", given)
		}
	}
}

func TestPaths(t *testing.T) {
	for value, want := range map[string][]string{
		"a":              {"a"},
		"/a:/b,c;d":      {"/a:/b,c;d", "/a", "/b", "c", "d"},
		"file://./x":     {"./x", "file", "//./x"},
		"https://a/b":    nil,
		"-I/x --key=y/z": {"-I/x --key=y/z", "-I/x", "/x", "--key=y/z", "--key", "key", "y/z"},
		"@k":             {"k"},
	} {
		if got := Paths(value); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
	if got := Paths(strings.Repeat("a:b ", 1000)); len(got) > mostPaths {
		t.Errorf("%d paths", len(got))
	}
}
