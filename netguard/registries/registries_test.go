package registries

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		home + "/.config/go/env":         "GOFLAGS=-mod=mod\nGOPROXY=https://ann:s3cret@goproxy.corp.example/path|https://proxy.golang.org,direct\n",
		home + "/.npmrc":                 "//npm.corp.example:4873/:_authToken=npm_s3cret\nregistry=http://npm.corp.example:4873/\n@corp:registry = \"https://npm2.corp.example/a?token=s3cret\"\n; registry=https://no.example/\nregistry.x=https://no.example\n",
		home + "/.config/pip/pip.conf":   "[global]\nindex-url = https://10.1.2.3:8443/simple\nextra-index-url =\n    https://one.example/simple\n    https://pypi:s3cret@two.example/simple\ntrusted-host = no.example\n",
		home + "/.cargo/config.toml":     "[registries.corp]\nindex = \"sparse+https://cargo.corp.example/index/\"\ntoken = \"s3cret\"\n[source.crates-io]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = 'https://mirror.example/'\nlocal-registry = \"/srv\"\n",
		root + "/etc/npmrc":              "registry=https://npm3.corp.example\n",
		home + "/project/.npmrc":         "registry=https://no.example\n",
		home + "/.yarnrc.yml":            "npmRegistryServer: \"https://yarn.corp.example\"\n",
		root + "/etc/pip.conf":           "[global]\nindex-url = file:///srv/simple\nextra-index-url = http://localhost:3141/ http://169.254.169.254/x http://metadata.google.internal/ http://mail.example:25/\n",
		root + "/usr/local/etc/npmrc/no": "a directory where a file is looked for",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"GOPROXY": "off,https://mirror.corp.example:8081", "UV_INDEX_URL": "https://uv.example/simple"}
	found := Find(Machine{Home: home, Root: root, Getenv: func(name string) string { return env[name] }})
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprintf("%s %s:%d %s", r.Pack, r.Host, r.Port, r.URL))
		if strings.Contains(fmt.Sprint(r), "s3cret") {
			t.Errorf("a secret is told: %+v", r)
		}
	}
	want := []string{
		"go mirror.corp.example:8081 https://mirror.corp.example:8081",
		"go goproxy.corp.example:443 https://goproxy.corp.example/path",
		"go proxy.golang.org:443 https://proxy.golang.org",
		"npm npm.corp.example:4873 http://npm.corp.example:4873/",
		"npm npm3.corp.example:443 https://npm3.corp.example",
		"npm npm2.corp.example:443 https://npm2.corp.example/a",
		"npm yarn.corp.example:443 https://yarn.corp.example",
		"pypi 10.1.2.3:8443 https://10.1.2.3:8443/simple",
		"pypi uv.example:443 https://uv.example/simple",
		"pypi one.example:443 https://one.example/simple",
		"pypi two.example:443 https://two.example/simple",
		"crates cargo.corp.example:443 https://cargo.corp.example/index/",
		"crates mirror.example:443 https://mirror.example/",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	wantEnv := "[[GOPROXY https://mirror.corp.example:8081,https://goproxy.corp.example/path,https://proxy.golang.org] " +
		"[npm_config_registry http://npm.corp.example:4873/] [PIP_INDEX_URL https://10.1.2.3:8443/simple] [UV_DEFAULT_INDEX https://10.1.2.3:8443/simple] " +
		"[PIP_EXTRA_INDEX_URL https://uv.example/simple https://one.example/simple https://two.example/simple] " +
		"[UV_INDEX https://uv.example/simple https://one.example/simple https://two.example/simple]]"
	if env := fmt.Sprint(Environment(found)); env != wantEnv {
		t.Errorf("programs are told\n%s\nwant\n%s", env, wantEnv)
	}
	if all := Find(Machine{Root: t.TempDir(), Getenv: func(string) string { return "" }}); len(all) != 0 {
		t.Errorf("on an empty machine: %v", all)
	}
}
