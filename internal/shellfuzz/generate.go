package shellfuzz

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"
)

//go:embed testdata/seeds.txt
var seedText string

// Seeds are commands that generation begins with.
var Seeds = readSeeds(seedText)

// readSeeds reads one command per line; ␤ is a line break.
func readSeeds(text string) []string {
	var seeds []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			seeds = append(seeds, strings.ReplaceAll(line, "␤", "\n"))
		}
	}
	return seeds
}

// Generator makes commands that analyzers are likely to get wrong.
type Generator struct {
	r      *rand.Rand
	corpus []string // commands that it was given
	pool   []string // these, and interesting ones so far
	tame   bool     // only what is accepted by itself
	tamed  map[*list][]string

	complete bool // the last program has its arguments
}

// maxKept is how many interesting commands are remembered.
const maxKept = 4000

// NewGenerator makes commands of its own and of a corpus: the same ones for the same seed, as long as the same ones are
// accepted and kept.
func NewGenerator(seed uint64, corpus []string, accepts func(text string) bool) *Generator {
	corpus = slices.Clip(slices.Concat(Seeds, corpus))
	g := &Generator{r: rand.New(rand.NewPCG(seed, 0x746f6f6c77617264)), corpus: corpus, pool: slices.Clone(corpus)}
	g.sort(accepts)
	return g
}

// Keep remembers a command that others should be made of.
func (g *Generator) Keep(text string) {
	if len(text) > 300 {
		return
	}
	if len(g.pool) < len(g.corpus)+maxKept {
		g.pool = append(g.pool, text)
		return
	}
	g.pool[len(g.corpus)+g.r.IntN(maxKept)] = text
}

// Next makes a command. Most are such that analysis accepts them: what it refuses proves little.
func (g *Generator) Next() string {
	n := g.r.IntN(20)
	g.tame = n < 12
	switch {
	case n < 9:
		return g.commandLine(0)
	case n < 12:
		return g.mutate(g.commandLine(0))
	case n < 14:
		return g.commandLine(0)
	case n < 17:
		return g.mutate(g.pick(g.corpus))
	default:
		text := g.pick(g.pool)
		for range 1 + g.r.IntN(3) {
			text = g.mutate(text)
		}
		return text
	}
}

func (g *Generator) pick(from []string) string { return from[g.r.IntN(len(from))] }

// some picks one of a list, or one of those of it that analysis accepts by themselves.
func (g *Generator) some(l *list) string {
	tame := l.tame
	if tame == nil {
		tame = g.tamed[l]
	}
	if g.tame && len(tame) > 0 {
		return g.pick(tame)
	}
	return g.pick(l.all)
}

func (g *Generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// rarely is a chance for what analysis refuses.
func (g *Generator) rarely(percent int) bool { return !g.tame && g.chance(percent) }

// list is something to pick from.
type list struct {
	command string // where each is tried, in the place of @
	all     []string
	tame    []string // those that are accepted everywhere; if there are none, it depends on the generator
}

// lists are those that generators sort.
var lists []*list

func newList(command string, all []string) *list {
	l := &list{command: command, all: all}
	lists = append(lists, l)
	return l
}

// sort finds those of every list that are accepted by themselves.
func (g *Generator) sort(accepts func(text string) bool) {
	g.tamed = map[*list][]string{}
	for _, l := range lists {
		for _, text := range l.all {
			if accepts(strings.ReplaceAll(l.command, "@", text)) {
				g.tamed[l] = append(g.tamed[l], text)
			}
		}
	}
}

// docs collects the bodies of here-documents of a line.
type docs struct{ bodies strings.Builder }

func (g *Generator) commandLine(depth int) string {
	d := &docs{}
	var b strings.Builder
	for g.chance(10) {
		for range 1 + g.r.IntN(3) {
			b.WriteString(g.some(directories) + g.pick([]string{" && ", "&&", " && ", "; ", " || "}))
		}
	}
	for i := range 1 + g.r.IntN(max(1, 4-depth)) {
		if i > 0 {
			b.WriteString(g.operator())
		}
		if i > 0 && g.chance(8) {
			b.WriteString(g.some(directories))
			continue
		}
		b.WriteString(g.simple(d, depth))
	}
	if g.chance(4) {
		b.WriteString(g.some(endings))
	}
	if g.chance(2) {
		return g.pick([]string{" ", "\t", "\n", "  "}) + b.String() + d.bodies.String()
	}
	return b.String() + d.bodies.String()
}

func (g *Generator) operator() string {
	op := g.pick([]string{"|", "|", "|", "&&", "&&", "||", ";", ";"})
	if g.rarely(5) {
		op = g.pick(oddOperators)
	}
	return g.pick([]string{"", " ", " "}) + op + g.pick([]string{"", " ", " ", "\t"})
}

func (g *Generator) simple(d *docs, depth int) string {
	if g.rarely(4) && depth < 2 {
		return strings.ReplaceAll(g.pick(compounds), "@", g.commandLine(depth+1))
	}
	var words []string
	if g.chance(6) {
		words = append(words, g.some(assignments))
	}
	for g.chance(6) {
		words = append(words, g.redirection(d))
	}
	words = append(words, g.program(depth))
	if !g.complete || g.rarely(10) {
		for range g.r.IntN(4) {
			words = append(words, g.word())
		}
	}
	g.complete = false
	for g.chance(20) {
		at := 1 + g.r.IntN(len(words))
		words = append(words[:at:at], append([]string{g.redirection(d)}, words[at:]...)...)
	}
	return strings.Join(words, g.pick([]string{" ", " ", " ", " ", "  ", "\t"}))
}

func (g *Generator) program(depth int) string {
	switch n := g.r.IntN(100); {
	case n < 78:
		return g.some(programs)
	case n < 82:
		return g.some(wrappers) + " " + g.some(programs)
	case n < 84:
		return g.some(wrappers) + " " + g.program(depth)
	case n < 86:
		return g.some(carriers)
	case n < 91 && depth < 3: // of those that take long the fewest
		text := g.some(shellStarts) + " " + g.quote(g.commandLine(depth+1))
		g.complete = true
		return text
	case n < 96 || g.tame:
		return g.some(oddPrograms)
	}
	return g.some(atoms)
}

func (g *Generator) redirection(d *docs) string {
	switch n := g.r.IntN(100); {
	case n < 22:
		return g.heredoc(d)
	case n < 42:
		return g.some(streamRedirections)
	}
	return g.some(redirectOperators) + g.pick([]string{"", "", " "}) + g.some(redirectTargets)
}

// heredoc makes a here-document; its body goes to the end of the line.
func (g *Generator) heredoc(d *docs) string {
	word := g.some(delimiters)
	delimiter := strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(word)
	op := g.pick([]string{"<<", "<<", "<<", "<<-", "<< ", "<<- ", "0<<"})
	if g.rarely(10) {
		op = g.pick([]string{"1<<", "3<<", "<<<", "<<~"})
	}
	d.bodies.WriteString("\n")
	for range g.r.IntN(4) {
		d.bodies.WriteString(g.pick([]string{"", "", "\t", "\t\t", " ", "\t \t"}))
		d.bodies.WriteString(g.some(bodies))
		d.bodies.WriteString(g.pick([]string{"\n", "\n", "\n", "\n\n", ""}))
	}
	if body := d.bodies.String(); body[len(body)-1] != '\n' {
		d.bodies.WriteString("\n")
	}
	if g.tame || g.chance(95) {
		if strings.HasPrefix(op, "<<-") || g.rarely(10) {
			d.bodies.WriteString(g.pick([]string{"", "\t", "\t\t"}))
		}
		d.bodies.WriteString(delimiter)
	}
	return op + word
}

// word makes a word of one part or several, quoted in one way or another.
func (g *Generator) word() string {
	w := g.part()
	for g.chance(18) {
		w += g.part()
	}
	return w
}

func (g *Generator) part() string {
	if g.chance(80) {
		return g.some(atoms)
	}
	var text strings.Builder
	for range 1 + g.r.IntN(6) {
		text.WriteString(g.pick(characters))
	}
	return g.quote(text.String())
}

// quote quotes a text for a shell, in one of the ways that people do.
func (g *Generator) quote(text string) string {
	switch n := g.r.IntN(100); {
	case n < 45 && !strings.Contains(text, "'"):
		return "'" + text + "'"
	case n < 75:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
	case n < 80 && !strings.ContainsAny(text, "\n\"$`\\") && text != "":
		var b strings.Builder // every character by itself
		for _, r := range text {
			b.WriteString(g.pick([]string{`\` + string(r), `"` + string(r) + `"`}))
		}
		return b.String()
	case n < 90 && !strings.ContainsAny(text, "\"`\\$"):
		at := g.boundary(text)
		return `"` + text[:at] + `"` + "'" + strings.ReplaceAll(text[at:], "'", `'\''`) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
