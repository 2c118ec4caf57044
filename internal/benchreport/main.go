// Command benchreport measures: it builds every test binary that holds a benchmark before it runs the first, so that no compiler
// works beside a measurement, runs them one after the other, and prints one table of all figures.
//
//	go run ./internal/benchreport [-bench REGEXP] [-skip REGEXP] [-benchtime TIME] [DIRECTORY…]
//
// A directory is the root of a module; without one it is the current directory.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	var m measurement
	flag.StringVar(&m.bench, "bench", ".", "the benchmarks to run")
	flag.StringVar(&m.skip, "skip", "", "the benchmarks to leave out")
	flag.StringVar(&m.time, "benchtime", "500ms", "how long each is run")
	flag.Parse()
	modules := flag.Args()
	if len(modules) == 0 {
		modules = []string{"."}
	}
	if err := m.run(modules, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchreport:", err)
		os.Exit(1)
	}
}

type measurement struct{ bench, skip, time string }

// binary is a test binary and the folder that its tests expect to run in.
type binary struct{ pkg, dir, file string }

func (m measurement) run(modules []string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var binaries []binary
	for _, module := range modules {
		built, err := m.build(module, dir)
		if err != nil {
			return err
		}
		binaries = append(binaries, built...)
	}
	if len(binaries) == 0 {
		return fmt.Errorf("no benchmark matches %q", m.bench)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var failed error
	for _, b := range binaries {
		start := time.Now()
		rows, err := m.measure(b)
		failed = errors.Join(failed, err)
		for _, row := range rows {
			fmt.Fprintf(table, "%s\t%s\n", b.pkg, row)
		}
		fmt.Fprintf(os.Stderr, "%s: %d figures, %.0f s\n", b.pkg, len(rows), time.Since(start).Seconds())
	}
	return errors.Join(table.Flush(), failed)
}

var declares = regexp.MustCompile(`(?m)^func (Benchmark\w*)\(\w+ \*testing\.B\)`)

// build makes the test binaries of a module's packages that declare a benchmark that is wanted.
func (m measurement) build(module, into string) ([]binary, error) {
	top, _, _ := strings.Cut(m.bench, "/")
	wanted, err := regexp.Compile(top)
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{range .TestGoFiles}}{{.}} {{end}}{{range .XTestGoFiles}}{{.}} {{end}}", "./...")
	list.Dir, list.Stderr = module, os.Stderr
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", module, err)
	}
	var binaries []binary
	for line := range strings.Lines(string(listed)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 3 {
			continue
		}
		holds, err := declaresOne(fields[1], strings.Fields(fields[2]), wanted)
		if err != nil {
			return nil, err
		}
		if !holds {
			continue
		}
		b := binary{fields[0], fields[1], filepath.Join(into, strconv.Itoa(len(binaries))+filepath.Base(module)+".test")}
		if b.file, err = filepath.Abs(b.file); err != nil {
			return nil, err
		}
		compile := exec.Command("go", "test", "-c", "-o", b.file, ".")
		compile.Dir, compile.Stderr = b.dir, os.Stderr
		if err := compile.Run(); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w", b.pkg, err)
		}
		binaries = append(binaries, b)
	}
	return binaries, nil
}

func declaresOne(dir string, files []string, wanted *regexp.Regexp) (bool, error) {
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return false, err
		}
		for _, found := range declares.FindAllSubmatch(text, -1) {
			if wanted.Match(found[1]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// measure runs the benchmarks of one binary and returns a row for each.
func (m measurement) measure(b binary) ([]string, error) {
	run := exec.Command(b.file, "-test.run", "^$", "-test.bench", m.bench, "-test.skip", cmp.Or(m.skip, "^$"), "-test.benchtime", m.time, "-test.benchmem", "-test.timeout", "30m")
	var out bytes.Buffer
	run.Dir, run.Stdout, run.Stderr = b.dir, &out, &out
	err := run.Run()
	var rows []string
	for line := range strings.Lines(out.String()) {
		if row, ok := figures(line); ok {
			rows = append(rows, row)
		}
	}
	if err != nil {
		return rows, fmt.Errorf("%s: %w\n%s", b.pkg, err, out.Bytes())
	}
	return rows, nil
}

// figures turns a line of a benchmark's output into cells: its name, and each figure with its unit. Figures that are zero because
// the benchmark does not mean them are left out.
func figures(line string) (string, bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", false
	}
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return "", false
	}
	var cells []string
	for pair := range slices.Chunk(fields[2:], 2) {
		if len(pair) == 2 && pair[0] != "0" {
			cells = append(cells, pair[0]+" "+pair[1])
		}
	}
	return strings.TrimPrefix(fields[0], "Benchmark") + "\t" + strings.Join(cells, "  "), true
}
