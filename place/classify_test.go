package place

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestPathPlaceVectors(t *testing.T) {
	gatetest.Run(t, "policy.json", "pathPlace", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Path, Workspace, Home, StateDir, ConfigFile string }
		gatetest.Decode(t, input, &in)
		c, err := New(Layout{Workspace: in.Workspace, Home: in.Home, StateDir: in.StateDir, ConfigFile: in.ConfigFile})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"place": c.Classify(in.Path)}
	})
}

func layout() Layout {
	return Layout{
		Workspace: "/home/u/proj", Home: "/home/u", StateDir: "/home/u/.toolward",
		ConfigFile: "/home/u/.toolward/toolward.jsonc", Own: []string{"/opt/tw/toolward"},
	}
}

func classifier(t testing.TB, l Layout) *Classifier {
	t.Helper()
	c, err := New(l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		want       Zone
	}{
		{"relative is doubt", "proj/a", Self},
		{"empty is doubt", "", Self},
		{"NUL is doubt", "/home/u/proj/a\x00b", Self},
		{"unclean escape is cleaned", "/home/u/proj/../.ssh/x", Secret},
		{"state database", "/home/u/.toolward/state.db", Self},
		{"state directory itself", "/home/u/.toolward", Self},
		{"state neighbour", "/home/u/.toolward2/x", Outside},
		{"inbound media", "/home/u/.toolward/media/inbound/a.png", Protected},
		{"own program", "/opt/tw/toolward", Self},
		{"neighbour of own program", "/opt/tw/toolward2", Outside},
		{"aws tree", "/home/u/.aws/sso/cache/x.json", Secret},
		{"gcloud", "/home/u/.config/gcloud/x", Secret},
		{"docker config", "/home/u/.docker/config.json", Secret},
		{"docker other", "/home/u/.docker/other.json", Outside},
		{"other person's ssh", "/home/v/.ssh/config", Secret},
		{"root's keys", "/root/.aws/credentials", Secret},
		{"other person's start-up file", "/Users/v/.zshrc", Protected},
		{"another agent's settings", "/home/u/proj/.qwen/settings.json", Protected},
		{"mercurial's settings", "/home/u/proj/.hg/hgrc", Protected},
		{"mercurial's store", "/home/u/proj/.hg/store/00changelog.i", Workspace},
		{"an agent's configuration", "/home/u/proj/opencode.json", Instructions},
		{"what ansible obeys", "/home/u/proj/ansible.cfg", Instructions},
		{"a directory of homes", "/home/v", Outside},
		{"what an agent signs in with", "/home/u/.claude/.credentials.json", Secret},
		{"a browser's cookies", "/home/u/.config/google-chrome/Default/Cookies", Secret},
		{"history", "/home/u/.bash_history", Secret},
		{"secrets of a container", "/run/secrets/kubernetes.io/serviceaccount/token", Secret},
		{"descriptors of others", "/proc/12/fd/3", Secret},
		{"own descriptors", "/proc/self/fd/3", Outside},
		{"sudoers.d", "/etc/sudoers.d/x", Secret},
		{"sudoers neighbour", "/etc/sudoers2", Outside},
		{"proc self", "/proc/self/environ", Secret},
		{"proc task", "/proc/12/task/13/mem", Secret},
		{"proc status", "/proc/12/status", Outside},
		{"proc no pid", "/proc/sys/root", Outside},
		{"pem", "/srv/x/server.pem", Secret},
		{"key below key directory", "/srv/x.pem/readme", Outside},
		{"env example", "/home/u/proj/.env.example", Workspace},
		{"env local", "/home/u/proj/.env.local", Secret},
		{"env directory", "/home/u/proj/.env/lib/x.py", Workspace},
		{"fido key", "/srv/id_ed25519_sk", Secret},
		{"cron", "/etc/cron.daily/x", Protected},
		{"git config of workspace", "/home/u/proj/.git/config", Protected},
		{"git config of submodule", "/home/u/proj/.git/modules/a/b/hooks/post-checkout", Protected},
		{"git config.worktree", "/home/u/proj/.git/worktrees/w/config.worktree", Protected},
		{"git head", "/home/u/proj/.git/HEAD", Workspace},
		{"other git config", "/srv/r/.git/config", Protected},
		{"github notes", "/home/u/proj/.github-notes.md", Workspace},
		{"github issue template", "/home/u/proj/.github/ISSUE_TEMPLATE.md", Workspace},
		{"instructions", "/home/u/proj/AGENTS.md", Instructions},
		{"instructions deeper", "/home/u/proj/pkg/CLAUDE.md", Instructions},
		{"instructions other case", "/home/u/proj/agents.md", Workspace},
		{"claude settings", "/home/u/.claude/settings.json", Protected},
		{"dots in names", "/home/u/proj/a..b/..c.txt", Workspace},
		{"trailing space", "/home/u/proj/.git /config", Protected},
		{"short name", "/home/u/proj/GIT~1/config", Protected},
		{"stream", "/home/u/proj/.git::$INDEX_ALLOCATION/config", Protected},
		{"zero width", "/home/u/proj/.g\u200cit/config", Protected},
		{"long s", "/home/u/proj/.vſcode/tasks.json", Protected}, // letters that file systems fold to others, wherever one may be mounted
		{"Kelvin sign", "/home/u/proj/.hus\u212ay/pre-commit", Protected},
		{"backup is no short name", "/home/u/proj/git.~1~", Workspace},
		{"macOS private", "/private/etc/passwd", Protected},
		{"home itself", "/home/u", Outside},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := classifier(t, layout()).Classify(tc.path); got != tc.want {
				t.Errorf("Classify(%q) = %v, want %v", tc.path, got, tc.want)
			}
		})
	}
}

func TestClassifyLayouts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Layout)
		path   string
		want   Zone
	}{
		{"workspace in state directory", func(l *Layout) { l.Workspace = "/home/u/.toolward/workspace" }, "/home/u/.toolward/workspace/a", Workspace},
		{"workspace is state directory", func(l *Layout) { l.Workspace = l.StateDir }, "/home/u/.toolward/state.db", Self},
		{"workspace is home", func(l *Layout) { l.Workspace = l.Home }, "/home/u/.toolward/state.db", Self},
		{"workspace is home, shell file", func(l *Layout) { l.Workspace = l.Home }, "/home/u/.bashrc", Protected},
		{"config in workspace", func(l *Layout) { l.ConfigFile = "/home/u/proj/tw.jsonc" }, "/home/u/proj/tw.jsonc", Self},
		{"state in workspace", func(l *Layout) { l.StateDir = "/home/u/proj/state" }, "/home/u/proj/state/x", Self},
		{"worktree under .claude", func(l *Layout) { l.Workspace = "/home/u/p/.claude/worktrees/w" }, "/home/u/p/.claude/worktrees/w/a.go", Workspace},
		{"settings beside that worktree", func(l *Layout) { l.Workspace = "/home/u/p/.claude/worktrees/w" }, "/home/u/p/.claude/settings.json", Protected},
		{"no workspace", func(l *Layout) { l.Workspace = "" }, "/home/u/proj/a", Outside},
		{"folding, protected", func(l *Layout) { l.FoldCase = true }, "/home/u/proj/.GIT/Config", Protected},
		{"folding, secret", func(l *Layout) { l.FoldCase = true }, "/Home/U/.SSH/x", Secret},
		{"folding, self", func(l *Layout) { l.FoldCase = true }, "/home/u/.Toolward/x", Self},
		{"folding, workspace", func(l *Layout) { l.FoldCase = true }, "/HOME/u/Proj/x", Workspace},
		{"folding, long s", func(l *Layout) { l.FoldCase = true }, "/home/u/.ſſh/x", Secret},
		{"folding, Kelvin sign", func(l *Layout) { l.FoldCase = true }, "/home/u/.\u212aUBE/config", Secret},
		{"folding, instructions", func(l *Layout) { l.FoldCase = true }, "/home/u/proj/sub/agents.MD", Instructions},
		{"folding, decomposed state", func(l *Layout) { l.FoldCase, l.StateDir = true, "/home/u/é" }, "/home/u/e\u0301/state.db", Self},
		{"folding, composed state", func(l *Layout) { l.FoldCase, l.StateDir = true, "/home/u/e\u0301" }, "/home/u/é/state.db", Self},
		{"folding, decomposed configuration", func(l *Layout) { l.FoldCase, l.ConfigFile = true, "/home/u/proj/é.jsonc" }, "/home/u/proj/e\u0301.jsonc", Self},
		{"folding, decomposed home", func(l *Layout) { l.FoldCase, l.Home = true, "/home/é" }, "/home/e\u0301/.ssh/x", Secret},
		{"folding, decomposed ", func(l *Layout) { l.FoldCase, l.Workspace = true, "/home/u/é" }, "/home/u/e\u0301/x", Workspace},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := layout()
			tc.change(&l)
			if got := classifier(t, l).Classify(tc.path); got != tc.want {
				t.Errorf("Classify(%q) = %v, want %v", tc.path, got, tc.want)
			}
		})
	}
}

func TestNewRefusesBadLayouts(t *testing.T) {
	for name, change := range map[string]func(*Layout){
		"no home":            func(l *Layout) { l.Home = "" },
		"no state directory": func(l *Layout) { l.StateDir = "" },
		"no configuration":   func(l *Layout) { l.ConfigFile = "" },
		"relative workspace": func(l *Layout) { l.Workspace = "proj" },
		"unclean home":       func(l *Layout) { l.Home = "/home/u/" },
	} {
		t.Run(name, func(t *testing.T) {
			l := layout()
			change(&l)
			if _, err := New(l); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// Whatever lies below a self or secret tree is never weaker than the tree, and folding never weakens.
func TestClassifyLaws(t *testing.T) {
	plain := classifier(t, layout())
	folding := layout()
	folding.FoldCase = true
	folded := classifier(t, folding)
	rapid.Check(t, func(t *rapid.T) {
		root := rapid.SampledFrom([]string{"/home/u/.toolward", "/home/u/.ssh", "/home/u/proj/.git/hooks", "/home/u/proj", "/etc", "/"}).Draw(t, "root")
		rest := rapid.StringMatching(`(/[A-Za-z.~: ]{1,8}){0,4}`).Draw(t, "rest")
		p := strings.TrimSuffix(root, "/") + rest
		if strings.Contains(p+"/", "/../") {
			return
		}
		got := plain.Classify(p)
		if tree := plain.Classify(root); tree <= Protected && got > tree {
			t.Fatalf("%q is %v although %q is %v", p, got, root, tree)
		}
		if f := folded.Classify(p); f > got {
			t.Fatalf("%q: folding weakens %v to %v", p, got, f)
		}
	})
}

func TestPlaceWords(t *testing.T) {
	for p := Self; p <= Workspace; p++ {
		back, err := Parse(p.String())
		if err != nil || back != p {
			t.Errorf("%v → %v, %v", p, back, err)
		}
	}
	if p, err := Parse("nowhere"); err == nil || p != Self {
		t.Errorf("an unknown word gave %v, %v", p, err)
	}
}

func BenchmarkClassify(b *testing.B) {
	c := classifier(b, layout())
	b.ReportAllocs()
	for b.Loop() {
		c.Classify("/home/u/proj/internal/deep/er/still/handlers/file_test.go")
	}
}

// Files that say what later runs start are no ordinary files of the workspace; sources whose names resemble them are.
func TestFilesThatLaterRunsObey(t *testing.T) {
	c, err := New(Layout{Workspace: "/ws", Home: "/home/dev", StateDir: "/home/dev/.toolward", ConfigFile: "/home/dev/.toolward/toolward.jsonc"})
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]Zone{
		"/ws/package.json": Instructions, "/ws/packages/a/package.json": Instructions, "/ws/Makefile": Instructions,
		"/ws/docs/GNUmakefile": Instructions, "/ws/vite.config.ts": Instructions, "/ws/.eslintrc": Instructions,
		"/ws/.eslintrc.json": Instructions, "/ws/Dockerfile": Instructions, "/ws/Dockerfile.dev": Instructions,
		"/ws/tests/conftest.py": Instructions, "/ws/build.rs": Instructions, "/ws/.gitattributes": Instructions,
		"/ws/.npmrc": Instructions, "/ws/compose.yaml": Instructions, "/ws/.github/copilot-instructions.md": Instructions,
		"/ws/.bashrc": Protected, "/ws/dot/.zshrc": Protected, "/ws/.gitlab-ci.yml": Protected, "/ws/.circleci/config.yml": Protected,
		"/ws/.cargo/config.toml": Protected, "/ws/.pre-commit-config.yaml": Protected, "/ws/a.code-workspace": Protected,
		"/ws/.git": Protected, "/ws/sub/.git": Protected, "/ws/.git/commondir": Protected, "/ws/.git/info/attributes": Protected,
		"/ws/.git/rebase-merge/git-rebase-todo": Protected, "/ws/.git/modules/x/commondir": Protected,

		"/ws/.git/objects/aa/bb": Workspace, "/ws/.git/HEAD": Workspace, "/ws/src/compose.ts": Workspace, "/ws/src/app.config.ts": Workspace,
		"/ws/src/makefile.go": Workspace, "/ws/docs/package.json.md": Workspace, "/ws/package-lock.json": Instructions,
		"/ws/setup.ts": Workspace, "/ws/src/vite.ts": Workspace, "/ws/.gitignore": Workspace, "/ws/.editorconfig": Workspace,
		"/ws/requirements.txt": Workspace, "/ws/go.mod": Workspace, "/ws/Cargo.toml": Workspace, "/ws/tsconfig.json": Workspace,
		"/ws/config/dockerfile_test.go": Workspace, "/srv/Makefile": Outside, "/srv/package.json": Outside, "/srv/vite.config.ts": Outside,
	} {
		if got := c.Classify(p); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
}

// Keys have their names in capitals on other systems, and are keys here, too. What is no key by its name in lower case is none.
func TestSecretNamesInCapitals(t *testing.T) {
	c := classifier(t, layout())
	for name, want := range map[string]Zone{
		"CLIENT.P12": Secret, "ID_RSA": Secret, "Id_Ed25519": Secret, "server.PEM": Secret, ".ENV": Secret, ".Env.Production": Secret,
		".ENV.EXAMPLE": Workspace, "ID_RSA.pub": Workspace, "KEYBOARD.md": Workspace, "P12": Workspace,
	} {
		if got := c.Classify("/home/u/proj/sub/" + name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
