package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/config"
)

// A parser that calls itself for every bracket runs out of stack, which ends the program: a file of brackets, written
// by whoever can write there, would end the gateway that watches it.
func TestDeepFileIsAnErrorAndNotTheEnd(t *testing.T) {
	t.Parallel()
	deep := `{"agents":` + strings.Repeat("[", config.MaxSize-100)
	_, err := config.Parse("toolward.jsonc", []byte(deep))
	var wrong config.Problems
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "toolward.jsonc:1:210: more than 200 levels") {
		t.Errorf("Parse: %v", err)
	}
	if _, err := config.ParseCases("cases.jsonc", []byte(strings.Repeat(`[{"a":`, config.MaxSize/8))); err == nil {
		t.Error("ParseCases took it")
	}
	if _, err := config.Get([]byte(deep), "agents"); err == nil {
		t.Error("Get took it")
	}
	if _, err := config.Set([]byte(deep), "agents", 1); err == nil {
		t.Error("Set took it")
	}
}

func TestBracketsInTextsAndCommentsAreNoLevels(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("[{", 500)
	for _, source := range []string{
		`{"a": "` + many + `\"` + many + `\\"}`,
		"{ // " + many + "\n}",
		"{ /* " + many + "\n" + many + " */ } // " + many,
		strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"[" + strings.Repeat("[],{},", 500) + "]",
	} {
		if _, err := config.ParseText([]byte(source)); err != nil {
			t.Errorf("%.40s…: %v", source, err)
		}
	}
	for _, source := range []string{"", "[", `"`, `"\`, "/*", "//", "/", strings.Repeat("[", 201) + strings.Repeat("]", 201)} {
		if _, err := config.ParseText([]byte(source)); err == nil {
			t.Errorf("%.40q was taken", source)
		}
	}
}

// Opening a pipe waits until somebody writes: the gateway would never look at its configuration again.
func TestPipeIsNoConfiguration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "toolward.jsonc")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("Load: %v", err)
	}
}
