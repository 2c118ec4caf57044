package egress

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/netguard/packs"
)

func TestParseRemotes(t *testing.T) {
	for text, want := range map[string]string{
		"[remote \"origin\"]\n\turl = https://git.example/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n":          "git.example:443",
		"[remote \"a\"]\nurl=https://ann:s3cret@GIT.example.:8443/a\n[remote \"b\"]\nurl = https://b.example/x":              "git.example:8443 b.example:443",
		"[remote \"a\"]\nurl = git@git.example:a/b.git\nurl = ssh://git.example/a\nurl = http://git.example/a":               "",
		"[remote \"a\"]\nurl = https://10.1.2.3/a\nurl = https://git.corp/a\nurl = https://git.example:22/a":                 "",
		"[remote \"a\"]\npushurl = https://push.example/a\n[url \"https://to.example/\"]\ninsteadOf = https://from.example/": "",
		"[core]\nurl = https://no.example/\n[submodule \"x\"]\nurl = https://no.example/":                                    "",
		"[remote \"a\"]\nurl = \"https://quoted.example/a\"\nurl = https://a.example/\\\nb":                                  "",
		"url = https://no.example/": "", "": "", "[remote \"a\"]\nurl": "",
	} {
		if got := strings.Join(parseRemotes([]byte(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := parseRemotes([]byte("[remote \"a\"]\n" + strings.Repeat("url = https://a.example/\n", 3) + strings.Repeat("#", 100_000) + "\nurl = https://late.example/")); !slices.Equal(got, []string{"a.example:443"}) {
		t.Errorf("%v", got)
	}
}

// project is a workspace with remotes.
func (w *world) project(t *testing.T, remotes ...string) (set func(...string)) {
	t.Helper()
	w.workspace = t.TempDir()
	w.remotes.path = filepath.Join(t.TempDir(), "sandbox", "remotes.json")
	if err := os.Mkdir(w.workspace+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	set = func(remotes ...string) {
		t.Helper()
		text := "[core]\n"
		for _, url := range remotes {
			text += "[remote \"" + url[8:12] + "\"]\n\turl = " + url + "\n"
		}
		if err := os.WriteFile(w.workspace+"/.git/config", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set(remotes...)
	return set
}

// must asks, or must not.
func (w *world) must(t *testing.T, why, host string, ask bool) {
	t.Helper()
	result := w.try(t, host)
	select {
	case q := <-w.people.asked:
		q.answer <- toolward.Answer{Decision: toolward.DenyCall}
		synctest.Wait()
		if !ask {
			t.Errorf("%s: people are asked about %s: %+v", why, host, q.Judgment.Findings)
		}
	default:
		if got := <-result; ask || got.err != nil {
			t.Errorf("%s: %s: nobody is asked, %v", why, host, got.err)
		}
	}
}

// The remotes that a project had are reached. One that a command adds asks: in its session, in the next, and after a restart.
func TestARemoteThatComesLaterAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, packed(packs.Remotes))
		set := w.project(t, "https://orig.example/a.git")
		use := w.enter(t, "agent:coder:a")
		w.must(t, "a remote of the beginning", "orig.example", false)
		if f := w.audit.Decisions()[0].Facts; f.Listed != "agents.defaults.sandbox.egress.packs (remotes)" {
			t.Errorf("%+v", f)
		}
		set("https://orig.example/a.git", "https://evil.example/a.git")
		w.must(t, "added in the middle of a session", "evil.example", true)
		use.Leave()
		w.enter(t, "agent:coder:b")
		w.must(t, "in the next session", "evil.example", true)
		w.must(t, "the first one is still there", "orig.example", false)

		after := newWorld(t, packed(packs.Remotes))
		after.workspace, after.remotes.path = w.workspace, w.remotes.path
		after.enter(t, "agent:coder:c")
		after.must(t, "after a restart", "evil.example", true)
		after.must(t, "the first one, after a restart", "orig.example", false)
		set("https://evil.example/a.git")
		after.must(t, "taken out", "orig.example", true)
	})
}

func TestARepositoryThatComesLaterAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, packed("npm"))
		set := w.project(t)
		if err := os.Remove(w.workspace + "/.git/config"); err != nil {
			t.Fatal(err)
		}
		w.run(t, "agent:coder:a", "git init; git remote add orig https://evil.example/a.git")
		set("https://evil.example/a.git")
		w.configure(t, packed(packs.Remotes)) // a person lets remotes be reached later
		go func() { _, _ = w.connect(t.Context(), "evil.example") }()
		q := <-w.people.asked
		if !slices.ContainsFunc(q.Judgment.Findings, func(f toolward.Finding) bool { return f.Code == findRemote }) {
			t.Errorf("people are not told that it is a new remote: %v", q.Judgment.Findings)
		}
		q.answer <- toolward.Answer{Decision: toolward.DenyCall}
	})
}

func TestRemotesAreThereToFetchFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, packed(packs.Remotes))
		w.project(t, "https://orig.example/a.git")
		w.enter(t, "agent:coder:a")
		l, err := w.connect(t.Context(), "orig.example")
		if err != nil {
			t.Fatal(err)
		}
		if l.Spend(16<<20) != nil || l.Spend(1) == nil {
			t.Error("a remote takes another number of bytes than a registry does")
		}
		l.End(netguard.Connection{})
		w.configure(t, packed("npm"))
		if l.Spend(1) == nil {
			t.Error("bytes leave to remotes that are struck out")
		}
		w.must(t, "struck out", "orig.example", true)
	})
}

// What cannot be remembered would be taken for the person's own at the next start.
func TestRemotesThatCannotBeKept(t *testing.T) {
	w := newWorld(t, packed(packs.Remotes))
	w.project(t, "https://orig.example/a.git")
	w.remotes.path = filepath.Join(w.workspace, ".git", "config", "remotes.json")
	if _, err := w.Enter(box, &toolward.Call{Session: "agent:coder:a", Caller: toolward.Caller{Agent: "coder", Workspace: w.workspace}}, "ls"); err == nil {
		t.Error("the sandbox is used")
	}
	broken := filepath.Join(t.TempDir(), "remotes.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.remotes.path = broken
	if _, err := w.Enter(box, &toolward.Call{Session: "agent:coder:a", Caller: toolward.Caller{Agent: "coder", Workspace: w.workspace}}, "ls"); err == nil {
		t.Error("the sandbox is used with a memory that cannot be read")
	}
}

// What stands in the place of the file is no way out of the workspace, and holds nobody up.
func TestOddGitConfigurations(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(outside, []byte("[remote \"a\"]\nurl = https://outside.example/"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a link out of the workspace": func(path string) error { return os.Symlink(outside, path) },
		"a pipe":                      func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"a directory":                 func(path string) error { return os.Mkdir(path, 0o755) },
		"a large file": func(path string) error {
			return os.WriteFile(path, []byte("[remote \"a\"]\nurl = https://large.example/\n"+strings.Repeat("#\n", maxGitConfig)), 0o644)
		},
	} {
		workspace := t.TempDir()
		if err := os.Mkdir(workspace+"/.git", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := put(workspace + "/.git/config"); err != nil {
			t.Fatal(err)
		}
		if got := readRemotes(workspace); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
