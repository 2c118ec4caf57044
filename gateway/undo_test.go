package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/undo"
)

// openKeeping opens a gateway with settings of the section undo, and somebody who answers every question alike.
func openKeeping(t *testing.T, home, section string, says toolward.Decision) *Gateway {
	t.Helper()
	owner := func(context.Context, *toolward.Question) toolward.Answer {
		return toolward.Answer{Decision: says, By: "owner"}
	}
	g, err := Open(t.Context(), Options{
		Home: filepath.Join(home, ".toolward"), Approver: Answering(owner),
		Configuration: []byte(`{"undo": ` + section + `, "tools": {"exec": {"security": "full", "ask": "off"}},
			"teg": {"preset": "workspace"}, "agents": {"defaults": {"sandbox": {"mode": "off"}}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// makes makes a call in a workspace.
func makes(t *testing.T, g *Gateway, workspace, tool string, arguments map[string]any) error {
	t.Helper()
	return makesIn(t, g, "agent:main:x", workspace, tool, arguments)
}

func makesIn(t *testing.T, g *Gateway, session toolward.SessionKey, workspace, tool string, arguments map[string]any) error {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Call(t.Context(), toolward.Call{
		Tool: tool, Arguments: raw, Session: session, Surface: toolward.SurfaceMCP, WorkDir: workspace, Host: toolward.HostGateway,
		Caller: toolward.Caller{Agent: "main", Owner: true, Context: "main", Workspace: workspace},
	})
	return err
}

func project(t *testing.T, home string) string {
	t.Helper()
	dir := filepath.Join(home, "project")
	for name, content := range map[string]string{"notes.txt": "mine", "src/deep/a.go": "package a", "src/b.bin": "\x00\x01"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != content {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWhatAnAdmittedCallDestroyedComesBack(t *testing.T) {
	home := shortHome(t)
	dir, g := project(t, home), openKeeping(t, home, `{}`, toolward.AllowOnce)
	for _, call := range []struct {
		tool      string
		arguments map[string]any
	}{
		{"read", map[string]any{"path": "notes.txt"}},
		{"exec", map[string]any{"command": "ls"}},
		{"write", map[string]any{"path": "notes.txt", "content": "theirs"}},
		{"exec", map[string]any{"command": "rm -rf src"}},
	} {
		if err := makes(t, g, dir, call.tool, call.arguments); err != nil {
			t.Fatal(call.tool, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "src")); err == nil {
		t.Fatal("the command did nothing")
	}
	calls := g.kept.Calls()
	if len(calls) != 2 || calls[0].Text != "rm -rf src" || calls[1].Tool != "write" || calls[0].Session != "agent:main:x" {
		t.Fatalf("kept are %+v", calls)
	}
	if _, err := g.kept.TakeBack(t.Context(), undo.Request{ID: calls[0].ID, With: []string{calls[1].ID}}, undo.Call{}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, map[string]string{"notes.txt": "mine", "src/deep/a.go": "package a", "src/b.bin": "\x00\x01"})
}

func TestAFullDiskRefusesWhatCouldNotBeTakenBack(t *testing.T) {
	home := shortHome(t)
	dir, g := project(t, home), openKeeping(t, home, `{}`, toolward.DenyCall)
	objects := filepath.Join(home, ".toolward", "undo", "objects")
	if err := errors.Join(os.RemoveAll(objects), os.Symlink("/dev/full", objects)); err != nil { // nothing can be put there
		t.Fatal(err)
	}
	err := makes(t, g, dir, "write", map[string]any{"path": "notes.txt", "content": "theirs"})
	refusal, ok := errors.AsType[*toolward.Refusal](err)
	if !ok || refusal.Code != toolward.CodeNotKept || !strings.Contains(refusal.Message(), "nobody could take it back") {
		t.Errorf("got %v", err)
	}
	holds(t, dir, map[string]string{"notes.txt": "mine"})
	if err := makes(t, g, dir, "read", map[string]any{"path": "notes.txt"}); err != nil {
		t.Errorf("reading: %v", err)
	}
}

// A workspace that does not fit asks, and here everybody says no; with undo switched off the same call runs.
func TestWhatIsNotCoveredAsks(t *testing.T) {
	for section, asks := range map[string]bool{`{"files": 100}`: true, `{"files": 100, "enabled": false}`: false} {
		home := shortHome(t)
		dir := project(t, home)
		for i := range 100 {
			if err := os.WriteFile(filepath.Join(dir, "src", strings.Repeat("x", i+1)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := makes(t, openKeeping(t, home, section, toolward.DenyCall), dir, "write", map[string]any{"path": "notes.txt", "content": "theirs"})
		refusal, _ := errors.AsType[*toolward.Refusal](err)
		if asked := refusal != nil && refusal.Code == toolward.CodeDeniedByUser; asked != asks || !asks && err != nil {
			t.Errorf("%s: %v", section, err)
		}
	}
}

// Of a workspace that is kept, only what no snapshot holds asks, and here everybody says no. All else runs.
func TestWhatWouldLoseMoreThanIsKeptAsks(t *testing.T) {
	home := shortHome(t)
	var asked string
	g, err := Open(t.Context(), Options{
		Home: filepath.Join(home, ".toolward"), Approver: Answering(func(_ context.Context, q *toolward.Question) toolward.Answer {
			for _, f := range q.Request.Facts.Findings {
				asked += f.Code + " " + f.Detail
			}
			return toolward.Answer{Decision: toolward.DenyCall, By: "owner"}
		}),
		Configuration: []byte(`{"tools": {"exec": {"security": "full", "ask": "off"}}, "teg": {"preset": "workspace"},
			"agents": {"defaults": {"sandbox": {"mode": "off"}}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	for i, tt := range []struct{ command, lost string }{
		{"rm -rf src", ""},
		{"rm -rf *", "build/db.sqlite: 209 MB"},
		{"rm -rf .", "build/db.sqlite"},
		{"rm -rf build", "build/db.sqlite"},
		{"find . -name '*.txt' -delete", ""},
		{"find . -delete", "build/db.sqlite"},
		{"truncate -s 0 notes.txt", ""},
		{"echo x > notes.txt", ""},
		{"> build/db.sqlite", "build/db.sqlite"},
		{"truncate -s 0 build/db.sqlite", "build/db.sqlite"},
		{"touch build/db.sqlite", ""},
		{"git rm -rf .", ""},
		{"git clean -fdx", "build/db.sqlite"},
		{"git clean -fdx src", ""},
		{"git checkout -- .", ""},
		{"git reset --hard", ""},
	} {
		dir, large := losable(t, filepath.Join(home, strconv.Itoa(i)))
		asked = ""
		calm := toolward.SessionKey("agent:main:" + strconv.Itoa(i)) // denials make a session tense
		err := makesIn(t, g, calm, dir, "exec", map[string]any{"command": tt.command})
		if strings.Contains(asked, "no_undo nobody could bring back "+tt.lost) != (tt.lost != "") || (err != nil) != (tt.lost != "") {
			t.Errorf("%q: asked %q, want %q; %v", tt.command, asked, tt.lost, err)
		}
		if info, err := os.Stat(large); tt.lost != "" && (err != nil || info.Size() != 200<<20) {
			t.Errorf("%q: it is gone", tt.command)
		}
	}
}

// losable is a project in a repository, with a file that git does not know and that is larger than is kept.
func losable(t *testing.T, home string) (dir, large string) {
	t.Helper()
	dir = project(t, home)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	large = filepath.Join(dir, "build", "db.sqlite")
	if err := errors.Join(os.Mkdir(filepath.Dir(large), 0o755), os.WriteFile(large, nil, 0o644), os.Truncate(large, 200<<20)); err != nil {
		t.Fatal(err)
	}
	return dir, large
}
