package allowlist

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/modes"
)

// TestDocumentedExample keeps docs/exec-approvals.md true: its file is sound, and means what the page says.
func TestDocumentedExample(t *testing.T) {
	text, err := os.ReadFile("../../docs/exec-approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- example: (\\w+) -->\n```\\w*\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		examples[m[1]] = m[2]
	}
	file, err := ParseStrict([]byte(examples["file"]))
	if err != nil {
		t.Fatal(err)
	}
	s, got := &Snapshot{File: file, accepted: file}, ""
	for _, agent := range []string{"main", "coder"} {
		m := s.Modes(modes.Settings{Security: modes.SecurityFull, Ask: modes.AskOff}, agent)
		got += agent + ": " + string(m.Security) + " " + string(m.Ask) + " " + string(m.AskFallback) + "\n"
	}
	if got != examples["modes"] {
		t.Errorf("got\n%swant\n%s", got, examples["modes"])
	}
	if main, coder := s.Allowlist("main"), s.Allowlist("coder"); len(main) != 1 || len(coder) != 3 || coder[2].Argv[1] != "test" {
		t.Errorf("%v %v", main, coder)
	}
	for _, words := range []string{modes.Choices(modes.Securities()), modes.Choices(modes.Asks()), modes.Choices(modes.Fallbacks())} {
		if row := "`" + strings.ReplaceAll(words, ", ", "`, `") + "`"; !strings.Contains(string(text), row) {
			t.Errorf("the page does not have the values %s", row)
		}
	}
}
