package builtin

import (
	"testing"
)

// BenchmarkFacts is what the tools add to the time of a decision.
func BenchmarkFacts(b *testing.B) {
	w := newWorld(b)
	w.put("ws/src/main.go", "package main\n")
	for _, c := range []struct {
		name, tool string
		args       args
	}{
		{"read", "read", args{"path": "src/main.go"}},
		{"write", "write", args{"path": "src/new.go", "content": "package main\n"}},
		{"edit", "edit", args{"path": "src/main.go", "oldText": "main", "newText": "other"}},
		{"apply_patch", "apply_patch", patchOf("*** Update File: src/main.go", "@@", "-package main", "+package other")},
		{"search", "search", args{"pattern": "main", "glob": "*.go"}},
		{"exec", "exec", args{"command": "go test ./...", "env": args{"CI": "1"}}},
		{"process", "process", args{"action": "list"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := w.facts(c.tool, c.args)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Tool.Facts(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSearch looks through a tree of a thousand files.
func BenchmarkSearch(b *testing.B) {
	w := newWorld(b)
	manyFiles(w, 1000)
	r := w.facts("search", args{"pattern": `needle\d+`})
	for b.Loop() {
		w.finish(r)
	}
}

// BenchmarkExec is a command that does nothing, started, followed and collected.
func BenchmarkExec(b *testing.B) {
	w := newWorld(b)
	r := w.facts("exec", args{"command": "true"})
	for b.Loop() {
		w.finish(r)
	}
}
