package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

func TestWaysToTheContainerEngine(t *testing.T) {
	for host, ok := range map[string]bool{
		"unix:///var/run/docker.sock": true, "tcp://127.0.0.1:2375": true, "tcp://[::1]:2375": true, "tcp://localhost:2375": true,
		"tcp://docker.example:2375": false, "tcp://10.0.0.1:2375": false, "ssh://docker.example": false, "npipe:////./pipe/x": false,
		"tcp://localhost.example:2375": false, "::": false, "": false,
	} {
		if err := (endpoint{host: host}).check(); (err == nil) != ok || err != nil && sandbox.CodeOf(err) != sandbox.CodeConfig {
			t.Errorf("%q without TLS: %v", host, err)
		}
	}
	if err := (endpoint{host: "tcp://docker.example:2376", certs: "/certs"}).check(); err != nil {
		t.Errorf("with TLS: %v", err)
	}
	// What is missing is an error, never a connection without TLS.
	if _, err := (endpoint{host: "tcp://docker.example:2376", certs: t.TempDir()}).open(); err == nil {
		t.Error("a directory without certificates was taken")
	}
}

func TestWhereTheContainerEngineIs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("DOCKER_CONTEXT", "")
	t.Setenv(client.EnvOverrideCertPath, "")
	t.Setenv(client.EnvOverrideHost, "")
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	context := func(name, host string) string {
		sum := sha256.Sum256([]byte(name))
		id := hex.EncodeToString(sum[:])
		write("contexts/meta/"+id+"/meta.json", fmt.Sprintf(`{"Name": %q, "Endpoints": {"docker": {"Host": %q}}}`, name, host))
		return id
	}
	context("near", "unix:///near.sock")
	far := context("far", "tcp://far.example:2376")
	write("contexts/tls/"+far+"/docker/cert.pem", "x")
	write("config.json", `{"currentContext": "near"}`)
	find := func(host, certs string) {
		t.Helper()
		if e, err := findEndpoint(); err != nil || e.host != host || e.certs != certs {
			t.Errorf("found %+v, %v; want %s", e, err, host)
		}
	}
	find("unix:///near.sock", "")
	t.Setenv("DOCKER_CONTEXT", "far")
	find("tcp://far.example:2376", filepath.Join(dir, "contexts/tls", far, "docker"))
	t.Setenv("DOCKER_CONTEXT", "missing")
	if e, err := findEndpoint(); err == nil {
		t.Errorf("a context that does not exist leads to %+v", e)
	}
	t.Setenv(client.EnvOverrideHost, "unix:///mine.sock")
	find("unix:///mine.sock", "")
	t.Setenv(client.EnvOverrideHost, "")
	t.Setenv("DOCKER_CONTEXT", "")
	write("config.json", "{")
	if e, err := findEndpoint(); err == nil {
		t.Errorf("settings that cannot be read lead to %+v", e)
	}
}

func TestPathsOfAGatewayInAContainer(t *testing.T) {
	paths := map[string]string{"/home/gateway": "/srv/gateway", "/home/gateway/code/": "/data", "/": "/all"}
	for source, want := range map[string]string{
		"/home/gateway": "/srv/gateway", "/home/gateway/a/b": "/srv/gateway/a/b", "/home/gateway/code": "/data", "/home/gateway/code/x": "/data/x",
		"/home/gatewayother": "/all/home/gatewayother", "/home/gateway/code/../../y": "/all/home/y",
	} {
		if got, err := onEngine(paths, source); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", source, got, err, want)
		}
	}
	delete(paths, "/")
	if got, err := onEngine(paths, "/etc"); sandbox.CodeOf(err) != sandbox.CodeConfig {
		t.Errorf("what is not mapped is %s, %v", got, err)
	}
	spec := &sandbox.Spec{}
	if err := checkPlace(spec, "/.dockerenv"); sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "hostPathMap") {
		t.Errorf("a gateway in a container without the map: %v", err)
	}
	spec.Docker.HostPaths = paths
	if err := checkPlace(spec, "/.dockerenv"); err != nil {
		t.Errorf("with it: %v", err)
	}
}

func TestTmpfsLeavesMemory(t *testing.T) {
	for _, c := range []struct {
		size, memory int64
		want         string
	}{
		{0, 0, "size=1073741824"},
		{0, 8 << 20, "size=1048576"},
		{0, 64 << 30, "size=1073741824"},
		{3 << 20, 8 << 20, "size=3145728"},
		{100 << 20, 8 << 20, "size=4194304"},
		{2 << 30, 0, "size=2147483648"},
	} {
		got := tmpfs(&sandbox.Spec{Tmpfs: []sandbox.Tmpfs{{Target: "/tmp", Size: c.size}}, Limits: sandbox.Limits{Memory: c.memory}})["/tmp"]
		if want := "rw,noexec,nosuid,nodev,mode=1777," + c.want; got != want {
			t.Errorf("size %d with memory %d is %s, want %s", c.size, c.memory, got, want)
		}
	}
}

// A bind that was allowed to hide the workspace is mounted in its place: container engines refuse two at one.
func TestMountsThatHideOthers(t *testing.T) {
	workspace, other := t.TempDir(), t.TempDir()
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{
		{Kind: sandbox.MountWorkspace, Source: workspace, Target: "/workspace", Writable: true},
		{Kind: sandbox.MountBind, Source: other, Target: "/workspace/"},
	}}
	m, err := mountsOf(spec, &inside.Program{Path: "/bin/true"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, one := range m.list {
		if one.Target == "/workspace" {
			sources = append(sources, one.Source)
		}
	}
	if !slices.Equal(sources, []string{other}) || len(m.identity) != 1 || m.identity[0].source != other {
		t.Errorf("%q is mounted, and %+v is looked at", sources, m.identity)
	}
}
