package envname

import (
	"path"
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
		"ACME_PATH=lib", "ACME_PATHS=lib,more", "ACME_PLUGIN_DIRS=p", "FOO_BINARY_PATHS=x", "HOOK_SCRIPT_FILES=a,b", "ACME_DIRS=lib:/usr/lib",
	} {
		if name, value, _ := strings.Cut(given, "="); !Runs(name, value) && !Dangerous(name) {
			t.Errorf("%s is harmless", given)
		}
	}
	for _, given := range []string{
		"CI=1", "ACME_SHELL=", "ACME_SHELL=true", "USE_COMMAND=0", "ACME_FLAGS=-v", "ACME_FLAGS=-vv --verbose --jobs=4 --depth 3", "ACME_PATH=/usr/lib/acme", "ACME_PATHS=/usr/lib:/opt/x", "PUBLIC_PATH=https://example.com/a",
		"DATABASE_URL=postgres://localhost/x", "BASE_PATH=/usr/share", "NODE_ENV=production", "PORT=3000", "OUTPUT_DIR=dist", "LOG_LEVEL=debug",
	} {
		if name, value, _ := strings.Cut(given, "="); Runs(name, value) {
			t.Errorf("%s is taken for a program", given)
		}
	}
}

func TestPaths(t *testing.T) {
	const key = "/home/u/.ssh/id_rsa"
	for _, value := range []string{
		key, "/a:" + key + ",c;d", "file://" + key, "-I" + key, "-isystem" + key, "-I/x --key=" + key, "@" + key, "--key=file://" + key, "@file://" + key, "a,file://" + key,
		"https://a," + key, "https://a:" + key, "https://u:p@h:80/x=" + key, "postgres://u:p@h/db?sslrootcert=" + key, "sqlite:///" + key, "x://" + key,
		"jdbc:sqlite:" + key, "http://[::1]," + key, `{"a": {"key": "` + key + `"}}`, "url(" + key + ")", "user@" + key, "a\n" + key + "\tb", "`" + key + "`", "file:///home%2Fu/%2essh/id_rsa",
		strings.Repeat("a,b:", 200) + key, strings.Repeat("/./", 2000) + key, "file://localhost" + key, "a%2C" + key + "%3bc",
	} {
		if paths, whole := Paths(value); !whole || !slices.ContainsFunc(paths, func(p string) bool { return path.Clean(p) == key }) {
			t.Errorf("%.80q: %.200q %v", value, paths, whole)
		}
	}
	for value, want := range map[string][]string{
		"x:/home/u/my dir/server.pem": {"/home/u/my dir/server.pem"},
		`--ca=/home/u/my\ dir/x`:      {"/home/u/my dir/x"},
		"$HOME/.netrc":                {"~/.netrc"},
		"a=${HOME}/x,b":               {"~/x"},
		"file://./x":                  {"./x"},
		"a:b c.pem:ro":                {"b c.pem"},
	} {
		if paths, whole := Paths(value); !whole || len(want) > 0 && !slices.Contains(paths, want[0]) {
			t.Errorf("%s: %q %v", value, paths, whole)
		}
	}
	for _, value := range []string{"https://a/b", "postgres://u:p@h:5432/db", "http://[::1]:80/x", "postgresql+asyncpg://h/db", "x=http://localhost:3000/a?b=c&d=e", "git@github.com:acme/x.git"} {
		if paths, whole := Paths(value); !whole || slices.ContainsFunc(paths, path.IsAbs) {
			t.Errorf("%s: %q %v", value, paths, whole)
		}
	}
	for _, value := range []string{strings.Repeat("x", mostValue+1), strings.Repeat("/a, /b:", 4000), strings.Repeat("{/a=", 1500)} {
		if paths, whole := Paths(value); whole || len(paths) > mostPaths+1 {
			t.Errorf("%.20s…: %d paths, said to be all", value, len(paths))
		}
	}
}

// FuzzPaths: wherever a path stands behind a separator, alone or with something behind another one, it is seen, or the value is said
// not to be seen as a whole.
func FuzzPaths(f *testing.F) {
	for _, before := range []string{"", "https://a", "--key", "a,b;c", "sqlite:", "http://u:p@[::1]:8", "'\"({", "%2f", "file:"} {
		for i := range len(separators) {
			f.Add(before, uint8(i), "x", uint8(i+1))
		}
	}
	signs := separators + " \t\n"
	f.Fuzz(func(t *testing.T, before string, separator uint8, behind string, end uint8) {
		sign, ends := signs[int(separator)%len(signs)], signs[int(end)%len(signs)]
		for _, secret := range []string{"/home/u/.ssh/id_rsa", "~/my dir/server.pem", "server.pem", "../x/.env"} {
			for _, value := range []string{before + string(sign) + secret, before + string(sign) + secret + string(ends) + behind} {
				if strings.ContainsAny(secret, " ") && (ends == ' ' || ends == '\t' || ends == '\n') && value != before+string(sign)+secret {
					continue // nobody could tell where it ends
				}
				paths, whole := Paths(value)
				if whole && !strings.ContainsRune(value, 0) && !slices.Contains(paths, secret) {
					t.Fatalf("%q hides %s: %q", value, secret, paths)
				}
			}
		}
	})
}
