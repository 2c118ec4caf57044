package command

import (
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// listed reads the commands of a file with what is expected of them. ␤ is a line break.
func listed(t testing.TB, name string) (commands []string, want []toolward.Verdict) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		answer, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		command = strings.ReplaceAll(strings.TrimSpace(command), "␤", "\n")
		switch {
		case answer == "" || strings.HasPrefix(answer, "#"):
		case ok && answer == "allow":
			commands, want = append(commands, command), append(want, toolward.Allow)
		case ok && answer == "ask":
			commands, want = append(commands, command), append(want, toolward.Ask)
		default:
			t.Fatalf("not a line: %q", line)
		}
	}
	return commands, want
}

// everyday are the commands as developers type them.
func everyday(t testing.TB) (commands []string, want []toolward.Verdict) {
	return listed(t, "everyday.txt")
}

// everydayWorld is a project with its tools, on a machine that has every program of these commands.
func everydayWorld(t testing.TB, commands []string) *world {
	t.Helper()
	files := map[string]string{
		"/ws/mvnw": "x", "/ws/gradlew": "x", "/ws/bin/rails": "x", "/ws/scripts/deploy.sh": "f", "/ws/.env": "f", "/ws/.git/HEAD": "f", "/usr/bin/[": "x", "/usr/bin/bash": "x",
		"/ws/.git/config": "t:[remote \"origin\"]\nurl = git@github.com:acme/shop.git\n", "/ws/scripts/check.sh": "f", "/ws/scripts/build.sh": "x", "/ws/bin/server": "x",
		"/ws/package.json": "f", "/ws/web/package.json": "f", "/ws/frontend/package.json": "f", "/ws/packages/core/package.json": "f", "/ws/src/a.ts": "f", "/ws/src/pager.ts": "f", "/ws/docs/a.md": "f",
		"/ws/go.mod": "f", "/ws/.venv/bin/python": "x", "/ws/.venv/bin/activate": "f", "/ws/.venv/bin/pytest": "x",
	}
	for _, tool := range []string{"prisma", "tsc", "eslint", "jest", "playwright", "prettier", "vitest"} {
		files["/ws/node_modules/.bin/"+tool] = "x"
	}
	for _, command := range commands {
		for _, word := range strings.Fields(command) {
			if strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789._+-") == "" {
				files["/usr/bin/"+word] = "x"
			}
		}
	}
	w := newWorld(t, files)
	w.kept = true
	return w
}

// asking is how many commands of a list ask under the preset "developer".
func asking(t testing.TB, name string, each func(command string, a *Assessment, want toolward.Verdict)) (asks, of int) {
	t.Helper()
	commands, want := listed(t, name)
	w := everydayWorld(t, commands)
	for i, command := range commands {
		a := w.evaluate(t, onMiss(Developer), command)
		if verdict(a) != toolward.Allow {
			asks++
		}
		each(command, a, want[i])
	}
	return asks, len(commands)
}

func TestEverydayCommands(t *testing.T) {
	for name, most := range map[string]float64{"everyday.txt": 11, "sessions.txt": 9} {
		asks, of := asking(t, name, func(command string, a *Assessment, want toolward.Verdict) {
			if verdict(a) != want {
				t.Errorf("%s: %s: %s, want %s: %v %s", name, command, verdict(a), want, codes(a), a.Reason)
			}
		})
		share := 100 * float64(asks) / float64(of)
		if share > most {
			t.Errorf("%s: more than %v %% ask", name, most)
		}
		t.Logf("%s: %d of %d commands ask (%.1f %%)", name, asks, of, share)
	}
}

// BenchmarkQuestions says how many commands of two lists ask where they run on the machine, and how long one takes to judge.
func BenchmarkQuestions(b *testing.B) {
	for _, name := range []string{"everyday", "sessions"} {
		b.Run(name, func(b *testing.B) {
			commands, _ := listed(b, name+".txt")
			w := everydayWorld(b, commands)
			asks := 0
			for i := 0; b.Loop(); i++ {
				if a := w.evaluate(b, onMiss(Developer), commands[i%len(commands)]); i < len(commands) && verdict(a) != toolward.Allow {
					asks++
				}
			}
			for i := b.N; i < len(commands); i++ {
				if verdict(w.evaluate(b, onMiss(Developer), commands[i])) != toolward.Allow {
					asks++
				}
			}
			b.ReportMetric(100*float64(asks)/float64(len(commands)), "%-ask")
		})
	}
}
