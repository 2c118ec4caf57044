package visible

import (
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy/report"
	"pgregory.net/rapid"
)

// coreTools registers a stand-in for each of the 25 core tools, and list, search and whatsapp_login.
func coreTools() []*toolward.Tool {
	return gatetest.Plugin("", append(CoreTools(), "list", "search", "whatsapp_login")...)
}

var (
	someServers = append(gatetest.Plugin("github", "github__issue"), gatetest.Plugin("files", "github", "files__delete")...)
	someTools   = append(coreTools(), someServers...)
)

// compiled is a Book with the warnings about it.
func compiled(c Config, tools []*toolward.Tool) (*Book, []report.Warning, error) {
	found := &report.Collector{}
	book, err := Compile(c, tools, found)
	switch {
	case err != nil:
		return nil, nil, err
	case len(found.Errs) > 0:
		return nil, nil, found.Errs
	}
	return &book, found.Warnings, nil
}

func compile(t testing.TB, c Config, tools ...*toolward.Tool) *Book {
	t.Helper()
	s, _, err := compiled(c, tools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustCompile(t *rapid.T, c Config) *Book {
	s, _, err := compiled(c, someTools)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func toolNames(tools []*toolward.Tool) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return strings.Join(all, " ")
}
