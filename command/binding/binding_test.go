package binding

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
)

func TestBindingVectors(t *testing.T) {
	type side struct {
		Version                                *int
		Argv                                   []string
		Cwd, AgentID, SessionKey, Host, NodeID string
		Env                                    map[string]string
		File                                   *BoundFile
		Files                                  []BoundFile
		Executable                             *BoundExecutable
	}
	binding := func(s *side) *Binding {
		if s == nil {
			return nil
		}
		b := &Binding{
			Version: bindingVersion, Host: s.Host, Node: s.NodeID, Agent: strings.TrimSpace(s.AgentID), Session: strings.TrimSpace(s.SessionKey),
			Dir: strings.TrimSpace(s.Cwd), Commands: []BoundCommand{{Argv: s.Argv, Executable: s.Executable, Files: s.Files}},
		}
		if s.Version != nil {
			b.Version = *s.Version
		}
		if s.File != nil {
			b.Commands[0].Files = append(b.Commands[0].Files, *s.File)
		}
		b.EnvHash, b.EnvNames = EnvironmentHash(s.Env)
		return b
	}
	gatetest.RunAsserted(t, "exec.json", "binding", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct{ Approved, Actual *side }
		gatetest.Decode(t, input, &in)
		err := binding(in.Approved).Check(binding(in.Actual))
		if drift, ok := errors.AsType[*Drift](err); ok {
			return map[string]any{"ok": false, "code": drift.Code}
		}
		return map[string]any{"ok": true}
	})
}

func TestEveryFieldIsCompared(t *testing.T) {
	approved := func() *Binding {
		return &Binding{
			Version: 1, Host: "gateway", Node: "n", Agent: "main", Session: "s", Text: "x", Dir: "/d", DirIdentity: "1:2:3", EnvHash: "e",
			Commands: []BoundCommand{{
				Argv: []string{"a", "b"}, Executable: &BoundExecutable{"/bin/a", "/usr/bin/a", "sha256:x"},
				Files: []BoundFile{{1, "/b", "h", "", ""}, {2, "/c", "", "", "stat:1"}},
			}},
		}
	}
	if err := approved().Check(approved()); err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{approved().Digest(): true}
	changes := map[string]func(b *Binding){
		"version": func(b *Binding) { b.Version = 0 }, "host": func(b *Binding) { b.Host = "node" }, "node": func(b *Binding) { b.Node = "" },
		"agent": func(b *Binding) { b.Agent = "Main" }, "session": func(b *Binding) { b.Session = "" }, "text": func(b *Binding) { b.Text = "x " },
		"dir": func(b *Binding) { b.Dir = "/D" }, "dir identity": func(b *Binding) { b.DirIdentity = "" },
		"environment": func(b *Binding) { b.EnvHash = "f" }, "no environment": func(b *Binding) { b.EnvHash = "" },
		"argv": func(b *Binding) { b.Commands[0].Argv = []string{"b", "a"} }, "joined argv": func(b *Binding) { b.Commands[0].Argv = []string{"a b"} },
		"another command": func(b *Binding) { b.Commands = append(b.Commands, BoundCommand{Argv: []string{"c"}}) },
		"no command":      func(b *Binding) { b.Commands = nil },
		"program":         func(b *Binding) { b.Commands[0].Executable.Path = "/a" }, "real program": func(b *Binding) { b.Commands[0].Executable.RealPath = "/a" },
		"program content": func(b *Binding) { b.Commands[0].Executable.Identity = "" }, "no program": func(b *Binding) { b.Commands[0].Executable = nil },
		"file": func(b *Binding) { b.Commands[0].Files[0].SHA256 = "" }, "file place": func(b *Binding) { b.Commands[0].Files[1].Path = "/C" },
		"rights of the file": func(b *Binding) { b.Commands[0].Files[0].Rights = "6755:0" },
		"file position":      func(b *Binding) { b.Commands[0].Files[0].ArgvIndex = 3 }, "long file": func(b *Binding) { b.Commands[0].Files[1].Identity = "stat:2" },
		"a file that the text names": func(b *Binding) { b.Files = []BoundFile{{1, "/b", "h", "", ""}} },
		"fewer files":                func(b *Binding) { b.Commands[0].Files = b.Commands[0].Files[:1] }, "order of files": func(b *Binding) { f := b.Commands[0].Files; f[0], f[1] = f[1], f[0] },
	}
	for name, change := range changes {
		now := approved()
		change(now)
		if approved().Check(now) == nil || now.Check(approved()) == nil {
			t.Errorf("%s: the difference passes", name)
		}
		if digests[now.Digest()] {
			t.Errorf("%s: the digest is that of another binding", name)
		}
		digests[now.Digest()] = true
	}
	var none *Binding
	if none.Check(none) == nil || none.Check(approved()) == nil || approved().Check(nil) == nil || (&Binding{Version: 1}).Check(&Binding{Version: 1}) == nil {
		t.Error("nothing approved lets something run")
	}
	// All fields of the struct are among the changes above: a new one must be compared.
	if n := reflect.TypeFor[Binding]().NumField() + reflect.TypeFor[BoundCommand]().NumField(); n != 13+3 {
		t.Errorf("%d fields: compare the new one in Check and change it here", n)
	}
}

// site is a directory with a program, a script and a link to it.
type site struct {
	t      *testing.T
	root   string
	binder Binder
}

func newSite(t *testing.T) *site {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, root: root}
	for _, dir := range []string{"ws", "bin"} {
		s.do(os.Mkdir(s.at(dir), 0o755))
	}
	s.write("bin/tool-1", "#!/bin/sh\necho one\n")
	s.write("bin/tool-2", "#!/bin/sh\necho two\n")
	s.do(os.Symlink("tool-1", s.at("bin/tool")))
	s.write("ws/run.py", "print(1)\n")
	s.write("other.py", "print(2)\n")
	return s
}

func (s *site) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
func (s *site) at(name string) string { return filepath.Join(s.root, name) }
func (s *site) write(name, content string) {
	s.t.Helper()
	s.do(os.WriteFile(s.at(name), []byte(content), 0o755))
}

func (s *site) bind() (*Binding, error) {
	return s.binder.Bind(Bindable{
		Agent: "main", Dir: s.at("ws"), Commands: []BindableCommand{
			{Argv: []string{s.at("bin/tool"), "x"}, Path: s.at("bin/tool")},
			{Argv: []string{"python3", "run.py"}},
		},
	})
}

func TestBind(t *testing.T) {
	s := newSite(t)
	approved, err := s.bind()
	s.do(err)
	tool := approved.Commands[0].Executable
	if tool.RealPath != s.at("bin/tool-1") || !strings.HasPrefix(tool.Identity, "sha256:") || tool.Path != s.at("bin/tool") {
		t.Errorf("%+v", tool)
	}
	if files := approved.Commands[1].Files; len(files) != 1 || files[0].ArgvIndex != 1 || files[0].Path != s.at("ws/run.py") || len(files[0].SHA256) != 64 {
		t.Errorf("%+v", files)
	}
	s.write("ws/new.txt", "what lies in the directory may change")
	again, err := s.bind()
	s.do(err)
	if err := approved.Check(again); err != nil {
		t.Error(err)
	}
}

// A script or a program that became set-user-id is not the one that was approved.
func TestRightsAreBound(t *testing.T) {
	for _, name := range []string{"ws/run.py", "bin/tool-1"} {
		s := newSite(t)
		approved, err := s.bind()
		s.do(err)
		s.do(os.Chmod(s.at(name), 0o755|os.ModeSetuid))
		now, err := s.bind()
		s.do(err)
		if approved.Check(now) == nil {
			t.Errorf("%s became set-user-id, and passes", name)
		}
	}
}

func TestBindRefuses(t *testing.T) {
	s := newSite(t)
	s.do(os.Symlink("ws", s.at("link")))
	s.do(os.Mkdir(s.at("ws/sub"), 0o755))
	for name, dir := range map[string]string{
		"a link": s.at("link"), "behind a link": s.at("link/sub"), "nothing": s.at("none"), "a file": s.at("other.py"), "relative": "ws",
	} {
		if _, err := s.binder.Bind(Bindable{Text: "x", Dir: dir}); err == nil {
			t.Errorf("%s is taken for a working directory", name)
		}
	}
	if _, err := s.binder.Bind(Bindable{Dir: s.at("ws"), Commands: []BindableCommand{{Argv: []string{"x"}, Path: s.at("bin/gone")}}}); err == nil {
		t.Error("a program that is not there was bound")
	}
	if _, err := s.binder.Bind(Bindable{Dir: s.at("ws"), Commands: []BindableCommand{{Argv: []string{"x"}, Path: s.at("bin")}}}); err == nil {
		t.Error("a directory was bound as a program")
	}
}

func TestLongFileIsBound(t *testing.T) {
	s := newSite(t)
	s.write("ws/run.py", strings.Repeat("#", BoundBytes+1))
	approved, err := s.bind()
	s.do(err)
	if f := approved.Commands[1].Files[0]; f.SHA256 != "" || !strings.HasPrefix(f.Identity, "stat:") {
		t.Errorf("%+v", f)
	}
	file, err := os.OpenFile(s.at("ws/run.py"), os.O_WRONLY, 0)
	s.do(err)
	info, err := file.Stat()
	s.do(err)
	_, err = file.WriteAt([]byte("x"), 5)
	s.do(errors.Join(err, file.Close(), os.Chtimes(s.at("ws/run.py"), info.ModTime(), info.ModTime())))
	now, err := s.bind()
	s.do(err)
	if approved.Check(now) == nil {
		t.Error("a byte in the middle changed, the size and time did not: it passes")
	}
}
