package live_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/native"
	"github.com/toolward/toolward/sandbox/settings"
	"github.com/toolward/toolward/sandbox/toolchain"
)

// benchPackages is how many packages the project has.
const benchPackages = 100

// BenchmarkInside builds and tests a project on the machine and in a native sandbox of the same settings, in turns. Everything is
// built before: what the machine has built is read inside, so that the first build there is warm as well.
func BenchmarkInside(b *testing.B) {
	for _, c := range []struct{ name, program, command string }{
		{"go_build", "go", "go build ./..."}, {"npm_test", "npm", "npm test"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := exec.LookPath(c.program); err != nil {
				b.Skipf("not run: there is no %s", c.program)
			}
			p := newBenchProject(b)
			p.onMachine(b, c.command) // warm
			handle := p.confined(b)
			first := inside(b, handle, c.command)
			var machine, confined []time.Duration
			for b.Loop() {
				for range 5 {
					machine = append(machine, p.onMachine(b, c.command))
					confined = append(confined, inside(b, handle, c.command))
				}
			}
			b.ReportMetric(float64(median(machine).Microseconds())/1000, "ms/machine")
			b.ReportMetric(float64(median(confined).Microseconds())/1000, "ms/inside")
			b.ReportMetric(float64(median(confined))/float64(median(machine)), "x-machine")
			b.ReportMetric(float64(first)/float64(median(machine)), "x-first")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchProject is a project in a home of its own.
type benchProject struct{ home, dir string }

func newBenchProject(b *testing.B) *benchProject {
	b.Helper()
	home, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	p := &benchProject{home, filepath.Join(home, "project")}
	files := map[string]string{
		"go.mod": "module example.org/app\n\ngo 1.26\n", "package.json": `{"name": "app", "version": "1.0.0", "scripts": {"test": "node --test"}}`,
		"app.test.js": "const test = require('node:test')\nfor (let i = 0; i < 50; i++) test('t' + i, () => {})\n",
	}
	for i := range benchPackages {
		text := fmt.Sprintf("package p%d\n\nimport (\n\t\"fmt\"\n\t\"net/http\"\n", i)
		use := "fmt.Sprint(http.MethodGet)"
		if i > 0 {
			text += fmt.Sprintf("\n\t\"example.org/app/p%d\"\n", i-1)
			use += fmt.Sprintf(" + p%d.Text()", i-1)
		}
		files[fmt.Sprintf("p%d/p.go", i)] = text + ")\n\nfunc Text() string { return " + use + " }\n"
	}
	for name, text := range files {
		file := filepath.Join(p.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func (p *benchProject) onMachine(b *testing.B, command string) time.Duration {
	b.Helper()
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = p.dir, []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "GOTOOLCHAIN=local"}
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", command, err, out)
	}
	return time.Since(start)
}

// confined is a sandbox of the project, with the default settings for this machine.
func (p *benchProject) confined(b *testing.B) sandbox.Handle {
	b.Helper()
	around := settings.Surroundings{StateDir: filepath.Join(p.home, ".toolward"), Home: p.home, Instance: b.Name(), Undecided: settings.ModeNonMain}
	around.Tools = toolchain.Detect(toolchain.Machine{Home: p.home, Path: os.Getenv("PATH"), Getenv: func(string) string { return "" }})
	compiled, problems := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: settings.Config{DegradeOK: []string{"cgroup"}}}}, around)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	e := native.New(native.Options{Instance: b.Name()})
	b.Cleanup(func() { _ = e.Close() }) // it was only measured
	if found, err := e.Probe(b.Context()); err != nil || found.Level < sandbox.LevelNoCgroup {
		if live.All() {
			b.Fatalf("no sandboxes here: %v, %+v", err, found.Checks)
		}
		b.Skipf("no sandboxes here: %v, %+v", err, found.Checks)
	}
	q := settings.Request{Agent: "coder", Session: "agent:coder:bench", Workspace: p.dir}
	plan, err := compiled.For("coder").Spec(b.Context(), settings.Site{Engine: sandbox.EngineNative}, q, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer plan.Close()
	handle, err := e.Ensure(b.Context(), plan.Spec)
	if err != nil {
		b.Fatal(err)
	}
	return handle
}

func inside(b *testing.B, handle sandbox.Handle, command string) time.Duration {
	b.Helper()
	start := time.Now()
	process, err := handle.Start(b.Context(), sandbox.Command{Shell: command, Merged: true})
	if err != nil {
		b.Fatal(err)
	}
	said, _ := io.ReadAll(process.Stdout()) // what failed is told
	status, err := process.Wait(b.Context())
	if err != nil || status.Code != 0 {
		b.Fatalf("%s inside: %v, %+v\n%s", command, err, status, said)
	}
	return time.Since(start)
}
