package server_test

import (
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/undo/kept"
)

// undoWorld is a console whose agent has changed one file of a workspace, and made one with a hostile name.
func undoWorld(t *testing.T) (b *browser, call, file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "notes.txt")
	must(t, os.WriteFile(file, []byte("mine\n"), 0o600))
	k := kept.Open(t.Context(), kept.Options{
		Dir: filepath.Join(t.TempDir(), "undo"), Workspace: func(dir string) (string, error) { return dir, nil }, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { must(t, k.Close()) })
	call, err := k.Begin(t.Context(), &toolward.Request{
		Call: toolward.Call{Session: "agent:coder:x", Caller: toolward.Caller{Agent: "coder", Workspace: dir}}, Tool: &toolward.Tool{Name: "exec"},
		Facts: toolward.Facts{Mutates: true, Command: "make <b>"},
	})
	must(t, err)
	must(t, os.WriteFile(file, []byte("theirs\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "<i>\x1b[31m"), nil, 0o600))
	k.End(t.Context(), call, nil)
	return signedIn(t, consoletest.New(t, consoletest.Options{Undo: k})), call, file
}

// formOf are the fields of the page's form.
func formOf(t *testing.T, page string) url.Values {
	t.Helper()
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	if form.Get("seen") == "" {
		t.Fatalf("no form:\n%s", page)
	}
	return form
}

func content(t *testing.T, file string) string {
	t.Helper()
	got, err := os.ReadFile(file)
	must(t, err)
	return string(got)
}

func TestACallIsTakenBackOnItsPage(t *testing.T) {
	b, call, file := undoWorld(t)
	_, list := b.get(b.base + "/undo")
	if !strings.Contains(list, "make &lt;b&gt;") || !strings.Contains(list, "/undo/one?call="+call) || strings.Contains(list, "\x1b") || strings.Contains(list, "<i>") {
		t.Errorf("the list:\n%s", list)
	}
	_, page := b.get(b.base + "/undo/one?call=" + call)
	for _, want := range []string{"-mine", "&#43;theirs", "Take back this call", "Back to before session"} {
		if !strings.Contains(page, want) {
			t.Errorf("the call's page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, `name="changed"`) {
		t.Error("it asks about what nobody has changed")
	}
	response, done := b.post(b.base+"/undo", formOf(t, page))
	if response.StatusCode != 200 || content(t, file) != "mine\n" || !strings.Contains(done, "Take that back") {
		t.Errorf("%d, %q\n%s", response.StatusCode, content(t, file), done)
	}
	again := regexp.MustCompile(`/undo/one\?call=\w+`).FindString(done)
	_, page = b.get(b.base + again)
	if b.post(b.base+"/undo", formOf(t, page)); content(t, file) != "theirs\n" {
		t.Errorf("taken back again it is %q", content(t, file))
	}
}

// Somebody has changed the file since: the page gives three ways, and none of them touches what changed after it was shown.
func TestWhatChangedSinceIsAPersonsChoice(t *testing.T) {
	b, _, file := undoWorld(t)
	must(t, os.WriteFile(file, []byte("person\n"), 0o600))
	_, page := b.get(b.base + "/undo/one?session=agent:coder:x")
	for _, want := range []string{"Changed since by somebody else", `value="keep"`, `value="replace"`, `value="beside"`, "Back to before this session"} {
		if !strings.Contains(page, want) {
			t.Errorf("the session's page lacks %q:\n%s", want, page)
		}
	}
	form := formOf(t, page)
	if response, _ := b.post(b.base+"/undo", form); response.StatusCode != 409 || content(t, file) != "person\n" {
		t.Errorf("without a choice: %d, %q", response.StatusCode, content(t, file))
	}
	form.Set("changed", "replace")
	must(t, os.WriteFile(file, []byte("person, later\n"), 0o600))
	if response, _ := b.post(b.base+"/undo", form); response.StatusCode != 409 || content(t, file) != "person, later\n" {
		t.Errorf("changed after it was shown: %d, %q", response.StatusCode, content(t, file))
	}
	form.Del("seen")
	if response, _ := b.post(b.base+"/undo", form); response.StatusCode != 400 || content(t, file) != "person, later\n" {
		t.Errorf("a form that does not say what was shown: %d, %q", response.StatusCode, content(t, file))
	}
	_, page = b.get(b.base + "/undo/one?session=agent:coder:x")
	form = formOf(t, page)
	form.Set("changed", "replace")
	if response, _ := b.post(b.base+"/undo", form); response.StatusCode != 200 || content(t, file) != "mine\n" {
		t.Errorf("replaced: %d, %q", response.StatusCode, content(t, file))
	}
}

func TestPagesOfWhatIsNotThere(t *testing.T) {
	b, _, _ := undoWorld(t)
	for path, want := range map[string]int{"/undo/one?call=nothing": 404, "/undo/one": 400, "/undo/one?session=agent:coder:y": 404} {
		if response, _ := b.get(b.base + path); response.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, response.StatusCode, want)
		}
	}
	none := signedIn(t, consoletest.New(t, consoletest.Options{}))
	if response, page := none.get(none.base + "/undo"); response.StatusCode != 404 || !strings.Contains(page, "keeps nothing of workspaces") {
		t.Errorf("where nothing is kept: %d\n%s", response.StatusCode, page)
	}
}
