package attacks

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolward/toolward"
)

// withScripts adds the scripts that the cases about approvals name.
func withScripts(w *world) {
	for _, name := range []string{"a.sh", "b.sh", "lib.sh", "a.py", "b.py", "deploy.py", "deploy.js", "deploy.ts", "pre.mjs", "build.mk", "x"} {
		must(w.t, os.MkdirAll(w.at("/ws"), 0o755))
		must(w.t, os.WriteFile(filepath.Join(w.at("/ws"), name), []byte("#!/bin/sh\n# "+name+"\n"), 0o755))
	}
}

// list gives an agent the entries of a profile of the corpus.
func (p *approvalPlay) list(agent, profile string) error {
	m, err := profileOf(profile)
	if err != nil {
		return err
	}
	var entries []toolward.CommandEntry
	for _, pattern := range m.Allow {
		entries = append(entries, toolward.CommandEntry{Pattern: p.root + pattern, Effects: []string{"read", "write", "network"}})
	}
	return p.commands.Allow(context.Background(), agent, entries)
}

// operandOf is the file that a command names: its last word.
func operandOf(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// changeFile does something to a file between question and answer.
func (p *approvalPlay) changeFile(s fields) (outcome, error) {
	if err := s.only("fs", "op", "write", "replace", "touch", "chmod", "bindMount", "content", "mode", "mtime"); err != nil {
		return outcome{}, err
	}
	at := func(name string) string { return p.at(strings.ReplaceAll(name, "<operand>", p.operand)) }
	switch {
	case s.has("write"):
		return outcome{}, overwrite(at(s.text("write")), s.text("content"))
	case s.has("replace"):
		return outcome{}, p.putInPlace(at(s.text("replace")), s.text("content"))
	case s.has("touch"):
		return outcome{}, p.rewriteUnnoticed(at(s.text("touch")), s.text("content"))
	case s.has("chmod"):
		mode, err := strconv.ParseUint(s.text("mode"), 8, 32)
		if err != nil {
			return outcome{}, err
		}
		return outcome{}, os.Chmod(at(s.text("chmod")), unixMode(mode))
	}
	for over := range s.object("bindMount") {
		// Only an administrator can mount. What a mount shows to whoever looks is another file under the name.
		if err := p.putInPlace(at(over), "touch PWNED"); err != nil {
			return outcome{}, err
		}
	}
	return outcome{}, nil
}

// overwrite changes the content of a file that is there.
func overwrite(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	return f.Close()
}

// putInPlace puts another file under the name.
func (p *approvalPlay) putInPlace(path, content string) error {
	other := filepath.Join(p.root, "other")
	if err := os.WriteFile(other, []byte(content), 0o755); err != nil {
		return err
	}
	return os.Rename(other, path)
}

// rewriteUnnoticed changes the content and sets the time of the change back.
func (p *approvalPlay) rewriteUnnoticed(path, content string) error {
	before, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := overwrite(path, content); err != nil {
		return err
	}
	return os.Chtimes(path, before.ModTime(), before.ModTime())
}

func unixMode(mode uint64) os.FileMode {
	m := os.FileMode(mode & 0o777)
	for bit, flag := range map[uint64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// documented reports whether people are told that what a program loads by itself is not bound.
func (p *approvalPlay) documented() bool {
	text, err := os.ReadFile(filepath.Join("..", "..", "SECURITY.md"))
	must(p.t, err)
	return strings.Contains(strings.Join(strings.Fields(string(text)), " "), "Not bound is what a program loads by itself")
}
