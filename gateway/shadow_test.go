package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/config"
)

// answers are people who answer by the path or command of a call.
func answers(say func(*toolward.Question) toolward.Decision) toolward.Approver {
	return Answering(func(_ context.Context, q *toolward.Question) toolward.Answer {
		return toolward.Answer{Decision: say(q), By: "ada"}
	})
}

// lab is a gateway that does not serve, whose questions answers decide.
type lab struct {
	*Gateway
	home, workspace string
	log             *bytes.Buffer
}

func newLab(t *testing.T, files map[string]string, say func(*toolward.Question) toolward.Decision) *lab {
	t.Helper()
	l := &lab{home: shortHome(t), log: &bytes.Buffer{}}
	l.workspace = filepath.Join(l.home, "ws")
	options := optionsFor(l.home, "127.0.0.1:0")
	for _, dir := range []string{l.workspace, filepath.Join(l.workspace, "src"), filepath.Join(l.workspace, "docs"), options.Home} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(options.Home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options.Log, options.Approver = slog.New(slog.NewTextHandler(l.log, nil)), answers(say)
	var err error
	if l.Gateway, err = Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) call(t *testing.T, tool, args string) error {
	t.Helper()
	_, err := l.Call(t.Context(), toolward.Call{
		ID: "c", Tool: tool, Arguments: json.RawMessage(args), Session: "agent:coder:x", Surface: toolward.SurfaceMCP,
		WorkDir: l.workspace, Host: toolward.HostGateway, Caller: toolward.Caller{Agent: "coder", Context: "main", Workspace: l.workspace},
	})
	return err
}

func TestShadowFollowsItsFile(t *testing.T) {
	l := newLab(t, map[string]string{"candidate.jsonc": `{}`, config.FileName: `{"teg": {"shadow": "candidate.jsonc"}}`}, nil)
	defer l.Close()
	file := filepath.Join(l.Gateway.home, "candidate.jsonc")
	first := l.shadow.Snapshot().Revision()
	for text, changes := range map[string]bool{`{"teg": {"preset": "nosuch"}}`: false, `{"teg":`: false, `{"teg": {"preset": "workspace"}}`: true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l.shadow.reload()
		if got := l.shadow.Snapshot().Revision(); (got != first) != changes {
			t.Errorf("%s: revision %s, before %s", text, got, first)
		}
		if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.shadow.reload()
	}
	if !strings.Contains(l.log.String(), "candidate.jsonc:1:20: teg.preset") {
		t.Errorf("the log does not say where the mistake is:\n%s", l.log)
	}
	l.shadow.use("absent.jsonc")
	if l.shadow.Snapshot() != nil {
		t.Error("the earlier shadow stands for a file that does not exist")
	}
	l.shadow.use("")
	if l.shadow.Snapshot() != nil {
		t.Error("there is a shadow without a file")
	}
}

// A shadow whose file changes while the gateway runs, and one that another file takes the place of.
func TestShadowIsWatched(t *testing.T) {
	l := newLab(t, map[string]string{"one.jsonc": `{}`, "two.jsonc": `{}`, config.FileName: `{"teg": {"shadow": "one.jsonc"}}`}, nil)
	defer l.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.shadow.follow(ctx) }()
	defer func() { stop(); <-done }()
	for _, name := range []string{"one.jsonc", "two.jsonc"} {
		l.shadow.use(name)
		before := l.shadow.Snapshot().Revision()
		deadline := time.After(time.Minute)
		for i := 0; l.shadow.Snapshot().Revision() == before; i++ {
			// The watch may not stand yet: change the file until it is seen.
			text := fmt.Sprintf(`{"teg": {"preset": "workspace"}} // %d`, i)
			if err := os.WriteFile(filepath.Join(l.Gateway.home, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-deadline:
				t.Fatalf("a change of %s is never seen", name)
			case <-time.After(150 * time.Millisecond):
			}
		}
	}
}

// Shadow mode counts as it was at start: a changed file neither gives protection nor takes it away before a restart.
func TestShadowModeIsOfTheStart(t *testing.T) {
	for _, c := range []struct {
		start, later string
		runs         bool
	}{{"shadow", "enforce", true}, {"enforce", "shadow", false}} {
		l := newLab(t, map[string]string{config.FileName: `{"teg": {"mode": "` + c.start + `"}, "config": {"autoApply": true}}`},
			func(*toolward.Question) toolward.Decision { return toolward.DenyCall })
		if err := os.WriteFile(l.configPath(), []byte(`{"teg": {"mode": "`+c.later+`"}, "config": {"autoApply": true}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		l.config.Reload()
		if got := l.config.Current().File.TEG.Mode; got != c.later {
			t.Fatalf("not applied: %s", got)
		}
		if err := l.call(t, "write", `{"path":"a","content":"1"}`); (err == nil) != c.runs {
			t.Errorf("started with %s: %v", c.start, err)
		}
		if err := l.call(t, "read", `{"path":"`+l.Gateway.home+`/state.db"}`); err == nil {
			t.Errorf("started with %s: what is blocked ran", c.start)
		}
		if warned := strings.Contains(l.log.String(), "teg.shadow_mode"); warned != c.runs {
			t.Errorf("started with %s: warned %v", c.start, warned)
		}
		l.Close()
	}
}
