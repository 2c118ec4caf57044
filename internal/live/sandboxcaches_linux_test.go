package live_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
)

// goProject makes a project that needs a module, and fetches that into the caches of the machine: from this repository's own.
func goProject(t *testing.T, m *live.Machine) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/google/go-cmp").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(m.Workspace, "go.mod"), "module example.org/app\n\ngo 1.26\n\nrequire github.com/google/go-cmp "+strings.TrimSpace(string(out))+"\n")
	writeFile(t, filepath.Join(m.Workspace, "main.go"), "package main\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/google/go-cmp/cmp\"\n)\n\nfunc main() { fmt.Println(\"equal:\", cmp.Equal(1, 1)) }\n")
	m.Extra = append(m.Extra, "GOFLAGS=-modcacherw -mod=mod", "GONOSUMDB=*", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	build := m.Command("go", "build", "-o", os.DevNull, ".")
	build.Env = append(build.Env, "GOPROXY=file://"+strings.TrimSpace(string(cache))+"/cache/download", "GONOSUMCHECK=1", "GOFLAGS=-modcacherw -mod=mod", "GOSUMDB=off")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// npmProject makes a project that needs a package of a registry, and fetches that into the cache of the machine.
func npmProject(t *testing.T, m *live.Machine) {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	for name, text := range map[string]string{"package/package.json": `{"name": "answer", "version": "1.0.0"}`, "package/index.js": "module.exports = 42\n"} {
		if err := errors.Join(archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}), func() error { _, err := archive.Write([]byte(text)); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(packed.Bytes())
	var registry *httptest.Server
	registry = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			_, _ = rw.Write(packed.Bytes()) // who asked notices
			return
		}
		_ = json.NewEncoder(rw).Encode(map[string]any{"name": "answer", "dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": map[string]any{ // as above
			"name": "answer", "version": "1.0.0",
			"dist": map[string]any{"tarball": registry.URL + "/answer/-/answer-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
		}}})
	}))
	t.Cleanup(registry.Close)
	m.Extra = append(m.Extra, "npm_config_registry="+registry.URL+"/")
	writeFile(t, filepath.Join(m.Workspace, "package.json"), `{"name": "app", "version": "1.0.0", "dependencies": {"answer": "1.0.0"}, "scripts": {"test": "node -p 'require(\"answer\")'"}}`)
	if said, err := m.Command("npm", "install", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := os.RemoveAll(filepath.Join(m.Workspace, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// state is every file below a directory with its size and time.
func state(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&all, name, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestCachesNative: programs build from what the machine has fetched, without a network, and nothing of it is written to.
func TestCachesNative(t *testing.T) {
	live.Need(t, live.Program("npm"))
	var modules, packages string
	g := newGuardedMachineOn(t, `{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "native", "degradeOk": ["cgroup"]}}}}`, func(m *live.Machine) {
		goProject(t, m)
		npmProject(t, m)
		modules, packages = state(t, filepath.Join(m.Home, "go")), state(t, filepath.Join(m.Home, ".npm"))
		m.Extra = append(m.Extra, "PIP_INDEX_URL=https://me:hunter2@pypi.example/simple", "NODE_ENV=development")
		m.Undecided()
	})
	session := g.connect(t)
	for _, c := range []struct{ command, want string }{
		{"cd " + g.Workspace + " && go build -o app . && ./app", "equal: true\n"},
		{"go build -x -o app . 2>&1 | grep -c '/compile ' ; true", "0\n"}, // what the machine has built is not built again
		{"go env GOMODCACHE GOFLAGS", g.Home + "/go/pkg/mod\n-modcacherw -mod=mod\n"},
		{"npm ci --offline 2>&1 | tail -5; npm test 2>&1 | tail -1", "42\n"},
		{"env | grep -c hunter2; echo $NODE_ENV", "0\ndevelopment\n"},
		{"rm -rf ~/go/pkg/mod/github.com ~/.npm/_cacache; ls ~/go/pkg/mod; touch ~/go/pkg/mod/mine && echo made", "cache\nmade\n"},
		{"ls -A /.toolward 2>/dev/null; grep -c overlay /proc/mounts", "\n"},
	} {
		if got := g.call(t, session, "exec", map[string]any{"command": c.command}); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%q, want %q", c.command, got, c.want)
		}
	}
	if now := state(t, filepath.Join(g.Home, "go")); now != modules {
		t.Errorf("the machine's modules were\n%.2000s\nand are\n%.2000s", modules, now)
	}
	if now := state(t, filepath.Join(g.Home, ".npm")); now != packages {
		t.Error("the machine's packages were changed")
	}
	if log := g.Log(); !strings.Contains(log, "PIP_INDEX_URL") || strings.Contains(log, "hunter2") {
		t.Errorf("the log does not say what is withheld, or says too much:\n%s", log)
	}
}

// TestCachesDocker: a container reads the modules that the machine has fetched.
func TestCachesDocker(t *testing.T) {
	host := live.Docker(t)
	b := &boxed{t: t, engine: "docker"}
	m := live.NewMachine(t, "")
	b.Machine = m
	m.Extra = append(m.Extra, "DOCKER_HOST="+host)
	t.Cleanup(b.forget)
	if out, status := m.Run("sandbox", "image", "build", "--busybox", "--name", b.image()); status != 0 {
		t.Fatalf("image build: %d\n%s", status, out)
	}
	goProject(t, m)
	m.Undecided()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, m, fmt.Sprintf(`{"agents": {"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "engine": "docker", "docker": {"image": %q},
		"env": {"CGO_ENABLED": "0"}, "toolchains": {"with": [%q]}}}}}`, b.image(), strings.TrimSpace(string(root))))
	session := g.connect(t)
	for _, c := range []struct{ command, want string }{
		{"cd " + g.Workspace + " && go build -o app . && ./app", "equal: true\n"},
		{"touch /var/cache/machine/go/x || echo kept", "kept\n"},
		{"test -d ~/go/pkg/mod/github.com && echo own", "own\n"},
	} {
		if got := g.call(t, session, "exec", map[string]any{"command": c.command, "yieldMs": 100000}); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%q, want %q", c.command, got, c.want)
		}
	}
}
