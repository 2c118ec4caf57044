package command

import (
	"os"
	"strings"
	"testing"

	"github.com/toolward/toolward"
)

// everyday reads the commands of testdata/everyday.txt with what is expected of them.
func everyday(t *testing.T) (commands []string, want []toolward.Verdict) {
	t.Helper()
	raw, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		answer, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case answer == "" || strings.HasPrefix(answer, "#"):
		case ok && answer == "allow":
			commands, want = append(commands, strings.TrimSpace(command)), append(want, toolward.Allow)
		case ok && answer == "ask":
			commands, want = append(commands, strings.TrimSpace(command)), append(want, toolward.Ask)
		default:
			t.Fatalf("not a line: %q", line)
		}
	}
	return commands, want
}

func TestEverydayCommands(t *testing.T) {
	commands, want := everyday(t)
	files := map[string]string{"/ws/mvnw": "x", "/ws/gradlew": "x", "/ws/bin/rails": "x", "/ws/scripts/deploy.sh": "f", "/ws/.git/HEAD": "f"}
	for _, tool := range []string{"prisma", "tsc", "eslint", "jest", "playwright", "prettier"} {
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
	asks := 0
	for i, command := range commands {
		a := w.evaluate(t, onMiss(Developer), command)
		if verdict(a) != toolward.Allow {
			asks++
		}
		if verdict(a) != want[i] {
			t.Errorf("%s: %s, want %s: %v %s", command, verdict(a), want[i], codes(a), a.Reason)
		}
	}
	if asks*100 > 12*len(commands) {
		t.Error("more than 12 % ask")
	}
	t.Logf("%d of %d commands ask (%.1f %%)", asks, len(commands), 100*float64(asks)/float64(len(commands)))
}
