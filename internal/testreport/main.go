// Command testreport reads `go test -json` from standard input and prints what a person wants to know: one line for
// every package, the whole output of what failed, the figures of the vector runners, and every skipped test with
// its reason. It ends with "N passed, N failed, N skipped" and exits 1 if anything failed — or, with
// TOOLWARD_LIVE=all, if anything was skipped.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath                    string
}

type report struct {
	out                     io.Writer
	outputs                 map[string][]string // by package and test
	builds                  map[string][]string // compiler output by import path
	skips                   []string
	passed, failed, skipped int
	strict                  bool
}

func main() {
	r := &report{
		out: os.Stdout, outputs: map[string][]string{}, builds: map[string][]string{},
		strict: os.Getenv("TOOLWARD_LIVE") == "all",
	}
	os.Exit(r.read(os.Stdin))
}

func (r *report) read(in io.Reader) int {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 1<<20), 1<<26)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			fmt.Fprintln(r.out, scanner.Text())
			continue
		}
		r.note(e)
	}
	return r.end()
}

func (r *report) note(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "build-fail":
		fmt.Fprintf(r.out, "BUILD FAILED %s\n%s", e.ImportPath, strings.Join(r.builds[e.ImportPath], ""))
	case "output":
		if text := strings.TrimSpace(e.Output); e.Test != "" && strings.Contains(text, "vectors ") && strings.HasSuffix(text, " held") {
			_, figure, _ := strings.Cut(text, "vectors ")
			fmt.Fprintln(r.out, "  vectors", figure)
		}
		r.outputs[key] = append(r.outputs[key], e.Output)
	case "pass":
		r.close(e, key, "ok  ")
		r.passed += one(e.Test)
	case "skip":
		if e.Test != "" {
			r.skipped++
			r.skips = append(r.skips, strings.TrimSpace(e.Package+" "+e.Test+": "+reason(r.outputs[key])))
		}
		delete(r.outputs, key)
	case "fail":
		fmt.Fprintf(r.out, "FAIL %s %s (%.1fs)\n%s", e.Package, e.Test, e.Elapsed, strings.Join(r.outputs[key], ""))
		r.failed++
		delete(r.outputs, key)
		if e.Test == "" {
			r.unfinished(e.Package)
		}
	}
}

// unfinished prints what the tests wrote that never ended: where a package crashed or ran out of time is told there.
func (r *report) unfinished(pkg string) {
	for _, key := range slices.Sorted(maps.Keys(r.outputs)) {
		if of, test, _ := strings.Cut(key, "\x00"); of == pkg {
			fmt.Fprintf(r.out, "UNFINISHED %s %s\n%s", pkg, test, strings.Join(r.outputs[key], ""))
			delete(r.outputs, key)
		}
	}
}

func (r *report) close(e event, key, word string) {
	if e.Test == "" {
		fmt.Fprintf(r.out, "%s %s (%.1fs)\n", word, e.Package, e.Elapsed)
	}
	delete(r.outputs, key)
}

func one(test string) int {
	if test == "" {
		return 0
	}
	return 1
}

// reason is the text of a skip: the lines that are not the runner's own.
func reason(lines []string) string {
	var words []string
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}

func (r *report) end() int {
	if len(r.skips) > 0 {
		fmt.Fprintln(r.out, "\nskipped, and why:")
		slices.Sort(r.skips)
		for _, s := range r.skips {
			fmt.Fprintln(r.out, "  "+s)
		}
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if r.strict && r.skipped > 0 {
		fmt.Fprintln(r.out, "TOOLWARD_LIVE=all allows no skipped test")
		return 1
	}
	if r.failed > 0 || r.passed == 0 {
		return 1
	}
	return 0
}
