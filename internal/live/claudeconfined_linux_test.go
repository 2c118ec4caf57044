package live_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/internal/live/scriptedmodel"
)

// confinedAgent is what a first start with an engine and the proposed presets come to.
const confinedAgent = `{"agents": {"defaults": {"sandbox": {"mode": "all"}}}, "tools": {"exec": {"preset": "developer"}}, "teg": {"preset": "workspace", "approval": {"timeoutMs": 60000}}}`

// workday is a session of a coding agent: each step is a command, and what it needs beside.
var workday = []struct {
	command    string
	background bool
}{
	{command: "pwd && ls"},
	{command: "git status --short --branch"},
	{command: "cat x.go | head -3"},
	{command: "grep -n Two *.go | sort"},
	{command: "find . -name '*.go' -not -path './.git/*' | sort"},
	{command: "wc -l $(git ls-files '*.go')"},
	{command: "cd sub"},
	{command: "pwd; cat b.txt"},
	{command: "cd \"$(git rev-parse --show-toplevel)\" && pwd"},
	{command: "for f in *.go; do echo \"== $f\"; head -1 \"$f\"; done"},
	{command: "go vet ./... && echo vetted"},
	{command: "go test ./... 2>&1 | sed 's/\\t[0-9.]*s.*//; s/(cached)//'"},
	{command: "FOO=1 sh -c 'echo $FOO'"},
	{command: "time true"},
	{command: "export GREETING=hello; echo $GREETING"},
	{command: "echo ${GREETING:-unset}"},
	{command: "mkdir -p build/out && echo data > build/out/a.txt && ls -R build"},
	{command: "rm -rf build && ls"},
	{command: "cat > notes.md <<'EOF'\n# Notes\n\n- one $HOME `x`\n- two\nEOF\ncat notes.md"},
	{command: "python3 - <<'EOF'\nimport json\nprint(json.dumps({'a': [1, 2, 3]}))\nEOF"},
	{command: "node -e 'console.log([1,2,3].map(x => x * 2).join())'"},
	{command: "printf 'all:\\n\\t@echo made $(NAME)\\n' > Makefile && make NAME=it"},
	{command: "make missing"},
	{command: "no-such-program --version"},
	{command: "exit 3"},
	{command: "ls /nonexistent; echo after"},
	{command: "(cd sub && ls) | cat"},
	{command: "ls *.go \\\n  | wc -l"},
	{command: "true && false || echo fallback"},
	{command: "test -f x.go && echo there"},
	{command: "if grep -q Two x.go; then echo yes; else echo no; fi"},
	{command: "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done"},
	{command: "seq 1 5 | xargs -n1 echo item"},
	{command: "sed -i 's/return 2/return 1 + 1/' x.go && git diff --stat"},
	{command: "git add -A && git commit -q -m \"$(cat <<'EOF'\nChange the sum\n\nMore words.\nEOF\n)\" && git log --format=%s -1"},
	{command: "git checkout -q -b feature && echo f > feature.txt && git add feature.txt && git commit -qm feature && git branch --show-current"},
	{command: "git checkout -q - && echo m > main.txt && git add main.txt && git commit -qm onmain && git checkout -q feature && git rebase -q - && git log --format=%s"},
	{command: "git stash list; echo dirty >> x.go; git stash -q; git stash pop -q; git checkout -q -- x.go; git status --short"},
	{command: "git show --stat --format=%s HEAD | cat"},
	{command: "grep nowhere x.go"},
	{command: "git tag v1 && git tag"},
	{command: "tar cf all.tar *.go && tar tf all.tar | sort && rm all.tar"},
	{command: "echo text | tee copy.txt | tr a-z A-Z; cat copy.txt; rm copy.txt"},
	{command: "diff <(echo a) <(echo b)"},
	{command: "awk '{print NR\": \"$0}' go.mod"},
	{command: "jq -n '{a: 1}' 2>/dev/null || echo '{\"a\": 1}'"},
	{command: "head -c 100000 /dev/zero | tr '\\0' x | wc -c"},
	{command: "echo out; echo err >&2"},
	{command: "sh -c 'kill -TERM $$'; echo $?"},
	{command: "timeout 1 sleep 5; echo $?"},
	{command: "sleep 0.2 & wait; echo waited"},
	{command: "cp x.go y.go && mv y.go z.go && chmod 600 z.go && stat -c %a z.go && rm z.go"},
	{command: "ln -s x.go link.go && readlink link.go && rm link.go"},
	{command: "python3 -m http.server 18231 --bind 127.0.0.1 --directory sub", background: true},
	{command: "for i in $(seq 100); do curl -sf http://127.0.0.1:18231/b.txt && break; sleep .1; done"},
	{command: "pkill -f '[h]ttp.server 18231'; echo stopped"},
	{command: "test -t 1 && echo terminal || echo no terminal"},
	{command: "cat /etc/hostname >/dev/null && echo read"},
	{command: "umask; id -un"},
	{command: "echo $SHELL | xargs basename; echo $0 | wc -l"},
	{command: "npm ci --no-audit --no-fund --no-update-notifier --loglevel=error | sed 's/ in .*//' && npm test --silent --no-update-notifier"},
	{command: "python3 -m venv .venv && .venv/bin/pip install -q --no-index --disable-pip-version-check ./greeting-1.0-py3-none-any.whl && .venv/bin/python -c 'import greeting; print(greeting.word)'"},
	{command: "source .venv/bin/activate && python -c 'import greeting, sys; print(sys.prefix.rsplit(\"/\", 1)[1])'"},
	{command: "git clean -fdxq -e notes.md && git reset -q --hard && git status --short"},
}

var (
	tookTime     = regexp.MustCompile(`(?m)^(real|user|sys).*$|\d+\.\d+s`)
	backgroundID = regexp.MustCompile(`(?i)(with ID|to): [^\s]+`)
	hashes       = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
)

// day lets the client work through the list and returns what its model was told of each step.
func (m *desk) day(client string, arguments ...string) []string {
	m.t.Helper()
	var replies []scriptedmodel.Reply
	for i, step := range workday {
		input := map[string]any{"command": step.command, "description": fmt.Sprintf("step %d", i)}
		if step.background {
			input["run_in_background"] = true
		}
		replies = append(replies, call(fmt.Sprintf("toolu_%d", i), "Bash", input))
	}
	model := m.claude(client, replies, arguments...)
	told := make([]string, len(workday))
	for i := range workday {
		r, ok := model.Result(fmt.Sprintf("toolu_%d", i))
		told[i] = fmt.Sprintf("error=%t answered=%t %s", r.IsError, ok, r.Text)
		told[i] = strings.ReplaceAll(told[i], m.Home, "HOME")
		told[i] = hashes.ReplaceAllString(backgroundID.ReplaceAllString(tookTime.ReplaceAllString(told[i], "TIME"), "ID"), "HASH")
	}
	return told
}

// files are the project's files with their modes and contents, but for what git keeps of times.
func (m *desk) files() string {
	m.t.Helper()
	list := exec.Command("sh", "-c", `find . -path ./.git -prune -o -printf '%M %p %l\n' | sort; git log --format='%s %an' --all; cat x.go`)
	list.Dir, list.Env = m.Workspace, m.Environment()
	out, err := list.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestClaudeCodeConfined: a working day of the real client, with its commands in a sandbox and without Toolward, is the same for the model
// and leaves the same files; and nobody is asked but about what works only on the machine.
func TestClaudeCodeConfined(t *testing.T) {
	client := live.Need(t, claudeCode)
	for _, program := range []string{"git", "go", "curl", "make", "node", "python3"} {
		live.Need(t, live.Program(program))
	}
	bare := newWorkdayDesk(t)
	want := bare.day(client, "--allowedTools", "Bash")

	m := newWorkdayDesk(t)
	m.install()
	got := m.day(client)
	for i, step := range workday {
		if got[i] != want[i] {
			t.Errorf("%s\n got %q\nwant %q", step.command, got[i], want[i])
		}
	}
	if have, want := m.files(), bare.files(); have != want {
		t.Errorf("the files are\n%s\nwithout Toolward\n%s", have, want)
	}
	m.whereThingsRan(client)
}

// TestClaudeCodeOwnRules: what a person's own settings of the client deny is not run because the client sees a ticket in its place.
func TestClaudeCodeOwnRules(t *testing.T) {
	t.Parallel()
	client := live.Need(t, claudeCode)
	m := newWorkdayDesk(t)
	m.install()
	path := filepath.Join(m.Home, ".claude", "settings.json")
	settings, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, strings.Replace(string(settings), "{", `{"permissions": {"deny": ["Bash(touch:*)"]},`, 1))
	m.refused(m.claude(client, []scriptedmodel.Reply{touch("toolu_1", "marker")}), "toolu_1", "marker", "did not run")
}

// TestClaudeCodeLosses: inside, what undo brings back runs without a question; what nobody could bring back waits for a person, and
// nobody is there.
func TestClaudeCodeLosses(t *testing.T) {
	t.Parallel()
	client := live.Need(t, claudeCode)
	live.Need(t, live.Program("git"))
	m := newWorkdayDesk(t)
	m.install()
	large := filepath.Join(m.Workspace, "build", "db.sqlite")
	if err := os.Mkdir(filepath.Dir(large), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, large, "")
	if err := os.Truncate(large, 200<<20); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		command string
		asks    bool
	}{
		{"echo x > x.go; git checkout -- .", false},
		{"> x.go", false},
		{"git reset --hard", false},
		{"truncate -s 0 x.go", false},
		{"rm -rf sub", false},
		{"git rm -rfq .", false},
		{"rm -rf build", true},
		{"git clean -fdx", true},
	}
	var replies []scriptedmodel.Reply
	for i, step := range steps {
		replies = append(replies, call(fmt.Sprintf("toolu_loss%d", i), "Bash", map[string]any{"command": step.command}))
	}
	model := m.claude(client, replies)
	for i, step := range steps {
		if r, ok := model.Result(fmt.Sprintf("toolu_loss%d", i)); !ok || r.IsError != step.asks {
			t.Errorf("%s: the model is told %+v", step.command, r)
		}
	}
	if info, err := os.Stat(large); err != nil || info.Size() != 200<<20 {
		t.Errorf("what nobody could bring back is gone: %v", err)
	}
	if m.ran("x.go") {
		t.Error("what could be taken back did not run")
	}
}

// whereThingsRan: the record says of each call where it ran and why, also of what works only on the machine or asks for it.
func (m *desk) whereThingsRan(client string) {
	m.t.Helper()
	steps := []struct{ command, host, why string }{
		{"ls", "sandbox", "mode"},
		{"docker ps", "gateway", "docker works only on the machine"},
		{"git push origin feature", "gateway", "git push works only on the machine"},
		{"# toolward: machine: the device is only there\nls", "gateway", "the model asks for the machine: the device is only there"},
		{"cd /usr && ls | head -1", "sandbox", "mode"},
		{"wc -c x.go", "gateway", "an entry has wc run on the machine"},
	}
	p := m.watches()
	p.allows("'/**/wc' --machine")
	var replies []scriptedmodel.Reply
	for i, step := range steps {
		replies = append(replies, call(fmt.Sprintf("toolu_where%d", i), "Bash", map[string]any{"command": step.command}))
	}
	m.claude(client, replies)
	decided := m.decisions(p.Terminal)
	for i, step := range steps {
		if r := decided[fmt.Sprintf("toolu_where%d", i)]; r.Host != step.host || !strings.Contains(r.Facts.HostWhy, step.why) {
			m.t.Errorf("%s: ran on %q because %q", step.command, r.Host, r.Facts.HostWhy)
		}
	}
}

// newWorkdayDesk is a desk with a project and a person whom git knows.
func newWorkdayDesk(t *testing.T) *desk {
	t.Helper()
	m := &desk{live.NewMachine(t, confinedAgent), t}
	writeFile(t, filepath.Join(m.Home, ".gitconfig"), "[user]\n\tname = A Person\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n")
	m.project()
	m.dependencies()
	if err := os.Remove(filepath.Join(m.Workspace, ".env")); err != nil {
		t.Fatal(err)
	}
	m.Start()
	return m
}

// dependencies gives the project what npm and pip install without a network.
func (m *desk) dependencies() {
	m.t.Helper()
	m.write("package.json", `{"name": "app", "version": "1.0.0", "scripts": {"test": "node -e \"console.log(require('dep'))\""}, "dependencies": {"dep": "file:./dep"}}`)
	m.write("package-lock.json", `{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "app", "version": "1.0.0", "dependencies": {"dep": "file:./dep"}}, "dep": {"version": "1.0.0"}, "node_modules/dep": {"resolved": "dep", "link": true}}}`)
	if err := os.Mkdir(filepath.Join(m.Workspace, "dep"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.write("dep/package.json", `{"name": "dep", "version": "1.0.0", "main": "index.js"}`)
	m.write("dep/index.js", "module.exports = 'a dependency'\n")
	var wheel bytes.Buffer
	w := zip.NewWriter(&wheel)
	for _, file := range []struct{ name, content string }{
		{"greeting.py", "word = 'hello from a wheel'\n"},
		{"greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"},
		{"greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"greeting-1.0.dist-info/RECORD", "greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\ngreeting-1.0.dist-info/WHEEL,,\ngreeting-1.0.dist-info/RECORD,,\n"},
	} {
		part, err := w.Create(file.name)
		if err == nil {
			_, err = part.Write([]byte(file.content))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.write("greeting-1.0-py3-none-any.whl", wheel.String())
}
