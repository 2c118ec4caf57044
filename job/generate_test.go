//go:build unix

package job_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

// generator makes command texts whose outcome does not depend on who is faster: programs of one pipeline write to
// different files, and read none that a neighbor writes.
type generator struct {
	*rand.Rand
	files   []string // that may exist when the next pipeline starts
	written int
}

func (g *generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// command is a list of pipelines.
func (g *generator) command() string {
	var text strings.Builder
	for i := range 1 + g.IntN(5) {
		joined := ";"
		if i > 0 {
			joined = g.pick(" && ", " || ", "; ", ";")
			text.WriteString(joined)
		}
		if strings.HasPrefix(joined, ";") && g.IntN(5) == 0 { // never passed over
			text.WriteString("cd " + g.pick("sub", "..", ".", "missing", "in", "sub/../sub"))
			continue
		}
		text.WriteString(g.pipeline())
	}
	if g.IntN(8) == 0 {
		text.WriteString(";")
	}
	return text.String()
}

func (g *generator) pipeline() string {
	var made []string
	stages := []string{g.source()}
	for range g.IntN(4) {
		stages = append(stages, g.filter())
	}
	for i := range stages {
		stages[i] += g.redirects(&made, i == 0, i == len(stages)-1)
	}
	g.files = append(g.files, made...)
	return strings.Join(stages, g.pick(" | ", "|"))
}

func (g *generator) file() string {
	return g.pick(append([]string{"in", "sub/f", "f", "missing", "sub", "../in"}, g.files...)...)
}

func (g *generator) source() string {
	return g.pick(
		"true", "false", "echo "+g.pick("a", "'b  c'", "x y z", `"d"`), `printf '%s\n' c a b`, "cat "+g.file(), "cat "+g.file()+" "+g.file(), "seq "+g.pick("1", "9", "3000"),
		"ls "+g.file(), "sort "+g.file(), "wc -l "+g.file(), "./script x", "./sub/script", "sh -c 'exit 3'", "sh -c 'kill -9 $$'", "sh -c 'echo e >&2; echo o'",
		"nice head -n 1 "+g.file(), "LC_ALL=C sort "+g.file(), "mkdir -p "+g.pick("sub/deep", "new"), "./denied", "sleep 0", "test -f "+g.file(), "grep -c a "+g.file(),
	)
}

func (g *generator) filter() string {
	return g.pick("cat", "sort", "sort -r", "wc -l", "tr a-z A-Z", "head -n 2", "tail -n 1", "sed s/x/q/", "grep a", "uniq", "true", "false", "cd sub", "cat - in", "nice sort", "sh -c 'cat; exit 4'", "sh -c 'cat; echo e >&2'")
}

// redirects never lets a program read what another has written to standard error: the authors of messages differ, which
// programs that sort would show.
func (g *generator) redirects(made *[]string, first, last bool) string {
	var text strings.Builder
	for g.IntN(4) == 0 {
		name := fmt.Sprintf("%sout%d", g.pick("", "", "", "sub/", "missing/"), g.written)
		switch g.IntN(9) {
		case 0, 1:
			text.WriteString(g.pick(" >", " > ", " 1>", " >|") + name)
			*made = append(*made, name)
		case 2:
			text.WriteString(g.pick(" >>", " 1>> ") + name)
			*made = append(*made, name)
		case 3:
			text.WriteString(g.pick(" 2>", " 2>>", " 2>| ") + name)
		case 4:
			text.WriteString(g.pick(" &>", " &>> ") + name)
		case 5:
			if last {
				text.WriteString(g.pick(" 2>&1", " >&2", " 1>&2"))
			}
		case 6:
			text.WriteString(g.pick(" >/dev/null", " 2>/dev/null", " &>/dev/null"))
		case 7:
			if first {
				if name := g.file(); name != "sub" { // the place check opens no directories for reading
					text.WriteString(" < " + name)
				}
			}
		case 8:
			text.WriteString(g.pick(" > sub", " > missing/x", " < /dev/null", " < missing"))
		}
		g.written++
	}
	return text.String()
}

func generate(seed uint64) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1))}
	return g.command()
}

// TestGeneratedAsBash compares generated commands with bash; FuzzAsBash tries other ones.
func TestGeneratedAsBash(t *testing.T) {
	const all = 120
	var compared atomic.Int64
	t.Run("each", func(t *testing.T) {
		for seed := range uint64(all) {
			text := generate(seed)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if compare(t, text) {
					compared.Add(1)
				}
			})
		}
	})
	if n := compared.Load(); n < all*3/4 {
		t.Errorf("only %d of %d commands were compared", n, all)
	}
}

func FuzzAsBash(f *testing.F) {
	f.Add(uint64(120))
	f.Fuzz(func(t *testing.T, seed uint64) { compare(t, generate(seed)) })
}
