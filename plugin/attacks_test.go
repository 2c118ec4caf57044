package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/plugin"
)

// attackCase is a case of attacks.json about a plug-in that guards calls.
type attackCase struct {
	ID, Class, Surface, Level, Want string
	Attempt                         struct {
		Runner *struct {
			BeforeToolCall string `json:"beforeToolCall"`
		} `json:"hooks-runner"`
	}
}

func TestAttackVectors(t *testing.T) {
	files := []string{filepath.Join("testdata", "vectors", "attacks.json")}
	if dir := os.Getenv("TOOLWARD_VECTORS"); dir != "" {
		files = append(files, filepath.Join(dir, "attacks.json"))
	}
	held, all := map[string]int{}, map[string]int{}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if i > 0 && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range attackCases(t, raw) {
			kind := c.Surface + " " + c.Class + " " + c.Level + " hooks-runner"
			all[kind]++
			if t.Run(c.ID, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkAttack(t, c) }) }) {
				held[kind]++
			}
		}
	}
	if len(all) == 0 {
		t.Error("no case was run")
	}
	for kind, n := range all {
		t.Logf("vectors attacks.json %s: %d/%d held", kind, held[kind], n)
	}
}

// attackCases are the cases that this package answers. Others have attempts of other shapes.
func attackCases(t *testing.T, raw []byte) (cases []attackCase) {
	var doc struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, raw := range doc.Cases {
		var c attackCase
		if json.Unmarshal(raw, &c) == nil && c.Attempt.Runner != nil {
			cases = append(cases, c)
		}
	}
	return cases
}

// checkAttack makes a call that policy allows, past a guard that fails in the way of the case.
func checkAttack(t *testing.T, c attackCase) {
	registry := plugin.NewRegistry()
	own, err := registry.Plugin("guard")
	if err != nil {
		t.Fatal(err)
	}
	err = own.OnBeforeToolCall(func(context.Context, plugin.BeforeToolCallEvent) (out plugin.BeforeToolCallResult, err error) {
		switch way := c.Attempt.Runner.BeforeToolCall; {
		case strings.Contains(way, "throw"), strings.Contains(way, "reject"), strings.Contains(way, "error"):
			err = errors.New(way)
		case strings.Contains(way, "panic"), strings.Contains(way, "crash"):
			panic(way)
		case strings.Contains(way, "never"), strings.Contains(way, "hang"), strings.Contains(way, "time"):
			time.Sleep(time.Hour)
		default:
			t.Errorf("the case has a way that this test does not know: %q", way)
		}
		return out, err
	})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuarded(t, toolward.Allow, registry, plugin.Config{})
	err = g.write(t, `{"path":"a"}`)
	if c.Want != "deny" || err == nil || len(g.ran) > 0 {
		t.Errorf("%v, ran %q, want %s", err, g.ran, c.Want)
	}
	synctest.Wait()
	time.Sleep(2 * time.Hour) // a handler that was given up ends, too
}
