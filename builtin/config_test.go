package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

func TestDefaultsAreInRange(t *testing.T) {
	if err := (Config{}).Check(); err != nil {
		t.Error(err)
	}
	keys := map[string]bool{}
	for _, l := range Limits() {
		if l.Default < l.Least || l.Default > l.Most || l.Least < 1 {
			t.Errorf("%+v", l)
		}
		keys[l.Key] = true
	}
	// Every number of the configuration has a row.
	kind := reflect.TypeFor[Config]()
	for i := range kind.NumField() {
		field := kind.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type.Kind() == reflect.Int && !keys[key] {
			t.Errorf("%s has no limit", field.Name)
		}
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"too large", Config{OutputChars: 1 << 30}, "outputChars is 1073741824: use 1000 to 200000"},
		{"negative", Config{Commands: -1}, "commands is -1: use 1 to 1000"},
		{"relative shell", Config{Shell: "bash"}, `shell "bash" is not an absolute path`},
		{"relative directory in PATH", Config{PathPrepend: []string{"bin"}}, `pathPrepend: "bin" is not an absolute path`},
		{"empty directory in PATH", Config{PathPrepend: []string{""}}, `pathPrepend: ""`},
		{"name of a variable", Config{PassEnvironment: []string{"A=B"}}, `passEnvironment: "A=B"`},
	} {
		t.Run(c.name, func(t *testing.T) { checkError(t, c.cfg.Check(), c.want) })
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	places := func(toolward.Caller) (*place.Classifier, error) { return nil, nil }
	_, err := New(Config{}, Deps{})
	checkError(t, err, "places of a caller")
	_, err = New(Config{KillGraceMs: 1}, Deps{Places: places})
	checkError(t, err, "killGraceMs is 1")
	_, err = New(Config{Shell: "/no/such/shell"}, Deps{Places: places})
	checkError(t, err, "is not a program")
}

// TestDocumentedLimits keeps the table of docs/tools.md true.
func TestDocumentedLimits(t *testing.T) {
	doc, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(doc), ",", "")
	for _, l := range Limits() {
		if row := fmt.Sprintf("| `%s` | %d | %d to %d |", l.Key, l.Default, l.Least, l.Most); !strings.Contains(text, row) {
			t.Errorf("docs/tools.md lacks the row %s", row)
		}
	}
}

// TestDocumentedParameters keeps the parameters of docs/tools.md true.
func TestDocumentedParameters(t *testing.T) {
	doc, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	for name, tool := range w.tools {
		_, section, ok := strings.Cut(string(doc), "\n## "+name+"\n")
		if !ok {
			t.Errorf("docs/tools.md says nothing about %s", name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var schema struct {
			Properties map[string]struct{ Enum []string }
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		for parameter, p := range schema.Properties {
			words := p.Enum
			if parameter != "action" {
				words = append(words, parameter)
			}
			for _, word := range words {
				if !strings.Contains(section, "`"+word+"`") {
					t.Errorf("docs/tools.md does not mention %s of %s", word, name)
				}
			}
		}
	}
}
