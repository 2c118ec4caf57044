package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/toolward/toolward/config"
)

const deployDir = "../../deploy"

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// accepts parses a command line as the program would.
func accepts(t *testing.T, args []string) *commandLine {
	t.Helper()
	var line commandLine
	parser, err := newParser(&line, kong.Exit(func(int) { t.Errorf("%q ends early", args) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Errorf("toolward %s: %v", strings.Join(args, " "), err)
	}
	return &line
}

// TestDeployPageIsTrue: the files that docs/deploy.md names are there, each is named, and its settings are those of the
// file.
func TestDeployPageIsTrue(t *testing.T) {
	page := readText(t, "../../docs/deploy.md")
	entries, err := os.ReadDir(deployDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(page, "deploy/"+e.Name()) {
			t.Errorf("docs/deploy.md does not name deploy/%s", e.Name())
		}
	}
	for _, m := range regexp.MustCompile(`deploy/[A-Za-z.]+`).FindAllString(page, -1) {
		if _, err := os.Stat(filepath.Join("../..", m)); err != nil && m != "deploy/" {
			t.Errorf("docs/deploy.md names a file that is not there: %v", err)
		}
	}
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllStringSubmatch(page, -1)
	file := readText(t, filepath.Join(deployDir, "toolward.jsonc"))
	if len(blocks) != 1 || !strings.HasSuffix(file, "\n"+blocks[0][1]) {
		t.Error("the settings on the page are not those of deploy/toolward.jsonc")
	}
	loaded, err := config.Parse("toolward.jsonc", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if f := loaded.File; f.Server.PublicOrigin != "https://gate.example.org" || !slices.Contains(f.Gateway.TrustedProxies, "127.0.0.1") {
		t.Errorf("%+v", f.Server)
	}
	for _, key := range regexp.MustCompile("`((?:server|gateway)\\.[A-Za-z.]+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(readText(t, "../../docs/configuration.md"), "`"+key[1]+"`") {
			t.Errorf("%s is no key of the configuration", key[1])
		}
	}
	// The proxies talk to the address that the gateway listens on, and know the name that it answers to.
	for name, needs := range map[string][]string{
		"nginx.conf": {"server_name gate.example.org;", "proxy_pass http://" + loaded.File.Server.Listen + ";", "proxy_set_header Host $host;", "X-Forwarded-For $remote_addr;", "Upgrade $http_upgrade;", "proxy_buffering off;"},
		"Caddyfile":  {"\ngate.example.org {", "reverse_proxy " + loaded.File.Server.Listen + " {"},
	} {
		text := readText(t, filepath.Join(deployDir, name))
		for _, need := range needs {
			if !strings.Contains(text, need) {
				t.Errorf("%s lacks %q", name, need)
			}
		}
		if strings.Count(text, "{") != strings.Count(text, "}") {
			t.Errorf("%s: braces do not match", name)
		}
	}
}

// TestDeployUnit: the unit starts the program with flags that it has, as a user of its own, and systemd reads it.
func TestDeployUnit(t *testing.T) {
	unit := readText(t, filepath.Join(deployDir, "toolward.service"))
	setting := func(key string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^`+key+`=(.*)$`).FindAllStringSubmatch(unit, -1)
		if len(found) != 1 {
			t.Fatalf("%s is set %d times", key, len(found))
		}
		return found[0][1]
	}
	start := strings.Fields(setting("ExecStart"))
	if start[0] != "/usr/local/bin/toolward" || accepts(t, start[1:]).Up.Listen != "127.0.0.1:7411" {
		t.Errorf("%q", start)
	}
	if user := setting("User"); user == "root" || user != setting("Group") {
		t.Errorf("user %q", user)
	}
	if home := "/var/lib/" + setting("StateDirectory"); !strings.Contains(setting("Environment"), "TOOLWARD_HOME="+home) || setting("StateDirectoryMode") != "0700" {
		t.Errorf("home %s", home)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // what systemd says is told where there is one
	}
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "toolward.service")
	if err := os.WriteFile(path, []byte(strings.Replace(unit, start[0], program, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), "toolward.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// TestDeployImage: the image starts the program with flags that it has, with a state of its own and not as root; the
// page makes every file that it copies.
func TestDeployImage(t *testing.T) {
	page, file := readText(t, "../../docs/deploy.md"), readText(t, filepath.Join(deployDir, "Dockerfile"))
	if !strings.Contains(file, "\nFROM scratch\n") || !regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`).MatchString(file) {
		t.Error("not from scratch, or as root")
	}
	command := regexp.MustCompile(`(?m)^CMD \["(.*)"\]$`).FindStringSubmatch(file)
	if command == nil {
		t.Fatal("no CMD")
	}
	if up := accepts(t, strings.Split(command[1], `", "`)).Up; up.Listen != "0.0.0.0:7411" || !strings.Contains(file, "\nEXPOSE 7411\n") {
		t.Errorf("%+v", up)
	}
	if !strings.Contains(file, "TOOLWARD_HOME=/state") || !strings.Contains(file, "\nVOLUME /state\n") || !strings.Contains(page, ":/state toolward") {
		t.Error("the state is not in the volume")
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY (?:--\S+ )?(\S+) `).FindAllStringSubmatch(file, -1) {
		if !strings.Contains(page, "image/"+m[1]) && !strings.Contains(page, m[1]+" image/") {
			t.Errorf("the page does not make %s", m[1])
		}
	}
}
