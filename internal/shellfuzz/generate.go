package shellfuzz

import (
	_ "embed"
	"math/rand/v2"
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

// Generator makes commands that analysers are likely to get wrong.
type Generator struct {
	r    *rand.Rand
	pool []string // interesting commands so far
}

// NewGenerator makes the same commands for the same seed.
func NewGenerator(seed uint64) *Generator {
	return &Generator{r: rand.New(rand.NewPCG(seed, 0x746f6f6c77617264)), pool: append([]string(nil), Seeds...)}
}

// Keep remembers a command that others should be made of.
func (g *Generator) Keep(text string) {
	if len(text) > 300 {
		return
	}
	if len(g.pool) < 4*len(Seeds)+2000 {
		g.pool = append(g.pool, text)
		return
	}
	g.pool[len(Seeds)+g.r.IntN(len(g.pool)-len(Seeds))] = text
}

// Next makes a command.
func (g *Generator) Next() string {
	switch n := g.r.IntN(10); {
	case n < 5:
		return g.commandLine(0)
	case n < 9:
		text := g.pick(g.pool)
		for range 1 + g.r.IntN(3) {
			text = g.mutate(text)
		}
		return text
	default:
		return g.mutate(g.commandLine(0))
	}
}

func (g *Generator) pick(from []string) string { return from[g.r.IntN(len(from))] }

func (g *Generator) chance(percent int) bool { return g.r.IntN(100) < percent }

// docs collects the bodies of here-documents of a line.
type docs struct{ bodies strings.Builder }

func (g *Generator) commandLine(depth int) string {
	d := &docs{}
	var b strings.Builder
	for i := range 1 + g.r.IntN(4) {
		if i > 0 {
			b.WriteString(g.operator())
		}
		b.WriteString(g.simple(d, depth))
	}
	if g.chance(4) {
		b.WriteString(g.pick([]string{";", " ;", " # comment 'x", "#x", " &", "\n", " \\", "\t", " |", " #\\", " ;;"}))
	}
	return b.String() + d.bodies.String()
}

func (g *Generator) operator() string {
	op := g.pick([]string{"|", "|", "|", "&&", "&&", "||", ";", ";"})
	if g.chance(3) {
		op = g.pick([]string{"|&", "&", "\n", "&&!", "|||", ";;", "&|", "&;", "||&", "\n&&", "&&\n", "|\n", ";\n", "\r\n", "; !", "\v", " "})
	}
	return g.pick([]string{"", " ", " "}) + op + g.pick([]string{"", " ", " ", "\t"})
}

func (g *Generator) simple(d *docs, depth int) string {
	if g.chance(2) && depth < 2 {
		return g.compound(depth)
	}
	var words []string
	if g.chance(6) {
		words = append(words, g.assignment())
	}
	for g.chance(6) {
		words = append(words, g.redirection(d))
	}
	words = append(words, g.program(d, depth))
	for range g.r.IntN(4) {
		words = append(words, g.word())
	}
	for g.chance(20) {
		at := 1 + g.r.IntN(len(words))
		words = append(words[:at:at], append([]string{g.redirection(d)}, words[at:]...)...)
	}
	return strings.Join(words, g.pick([]string{" ", " ", " ", " ", "  ", "\t"}))
}

var (
	programs = []string{
		"ls", "cat", "grep", "git", "go", "make", "rm", "cp", "false", "echo", "printf", "true", "p", "q", "./run.sh", "sub/tool",
		"/usr/bin/id", "../x", "~/x", "'ls'", `"cat"`, `l\s`, `g"re"p`, "[", "test", ":", "cd sub", "cd link", "cd ..", "cd nowhere", "cd empty", "pwd",
	}
	oddPrograms = []string{
		"if", "then", "fi", "for", "while", "do", "done", "case", "esac", "in", "function", "select", "time", "!", "{", "}", "[[", "]]", "coproc",
		"eval", "exec", "source", ".", "command", "builtin", "export", "declare", "local", "readonly", "unset", "set", "let", "read X", "trap", "alias",
		"", "''", `""`, "$PLAIN", "$EMPTY", "{ls,-l}", "l*", "=", "a=b", "'a=b'", `a\=b`, "1", "-", "--", "*", "?", "~", "~root/x", "#", `\#`, "!ls", "^a^b", "%1",
		"é", "\u00a0", "ls\u00a0", "日本", "a+=b", "a[1]=b", "a[$(id)]=1", "1=2", "&", "<(ls)", "$'ls'", "((1))", "mapfile", "printf -v X", "test -v", "exit", "return",
		"wait", "kill", "type", "hash", "umask", "unalias", "pushd", "getopts", "compgen", "shift", "if=x", "do=1", "time -p", "nohup", "env", "sudo", "busybox",
	}
	wrappers = []string{
		"env", "env --", "nice", "nice -n 5", "nice -5", "nice -n5", "nice --adjustment=3", "nice -n -1", "nohup", "nohup --", "stdbuf -oL", "stdbuf -o L -e0",
		"timeout 5", "timeout -k 1 5s", "timeout --foreground 1m", "timeout .5", "timeout -s KILL 3", "env A=b", "env -i", "nice -n", "timeout", "xargs", "xargs -n 1", "xargs -I{}", "xargs -0",
		"timeout 5.", "timeout 1d", "nice -n +3", "nice --5", "nice -+5", "stdbuf -o", "timeout -v 2", "timeout -- 3", "nice --", "timeout -p 4", "nice -n 3 -n 4", "stdbuf --output=L", "/usr/bin/env", "env env", "ENV", "xargs -r",
	}
)

func (g *Generator) program(d *docs, depth int) string {
	switch n := g.r.IntN(100); {
	case n < 78:
		return g.pick(programs)
	case n < 84:
		return g.pick(wrappers) + " " + g.pick(programs)
	case n < 86:
		return g.pick(wrappers) + " " + g.program(d, depth)
	case n < 90 && depth < 3:
		return g.pick([]string{"bash -c", "sh -c", "bash -lc", "sh -ec", "bash -x -c", "bash -c --", "dash -c", "/bin/sh -c", "bash +x -c", "bash -euc"}) + " " + g.quote(g.commandLine(depth+1))
	case n < 97:
		return g.pick(oddPrograms)
	}
	return g.word()
}

func (g *Generator) assignment() string {
	name := g.pick([]string{"LANG", "LC_ALL", "TZ", "CI", "NO_COLOR", "TERM", "PATH", "X", "LD_PRELOAD", "IFS", "LC_X", "LINES", "COLUMNS", "LC_ALL+", "TZ[0]", "\"CI\"", `C\I`})
	return name + "=" + g.pick([]string{"", "C", "1", "'a b'", `"x"`, "~", "~/x", "a:~", "$PLAIN", "*", "{a,b}", "(a b)", `a\ b`, "$(id)", "a=b", "#", "a#b", "'", "[x]", "C.UTF-8"})
}

func (g *Generator) redirection(d *docs) string {
	if g.chance(25) {
		return g.heredoc(d)
	}
	op := g.pick([]string{">", ">>", "2>", "<", "&>", ">|", "&>>", "1>", "2>>", "0<"})
	if g.chance(20) {
		op = g.pick([]string{"<>", ">&", "<&", "3>", "{fd}>", "<<<", "2>&", "0>", "1<", "2<", "10>", "01>", "02>", "2&>", "1&>>", "&>|", "-1>", "é2>", `\2>`, "'2'>", "{X}<", "9<", "1>|", "2>|", "0>>", ">>|", "a2>", "2 >"})
	}
	if g.chance(25) {
		return g.pick([]string{"2>&1", ">&2", "1>&2", ">/dev/null", "2>/dev/null", "&>/dev/null", "</dev/null", "2>&-", ">&-", "<&-", "2>&1-", ">&1", "2>&2", "1>&1", "0>&1", "2>&01", ">&'2'", ">& 2", "2>&\"1\"", "2>& 1", ">&2x", "2>&$X", "&>/dev/nul", ">/dev/stdout", ">/dev/tcp/h/1"})
	}
	return op + g.pick([]string{"", "", " "}) + g.pick([]string{"out.txt", "new", "sub/new", "a.go", "x", "nowhere/f", "'with space'", `"new 2"`, `a\b`, `a\*b`, "$PLAIN", "*", "~/new", "{a,b}", "empty", "/w/new", "1", "2", "é", "''", "-", "--", "&1", "(", "$(id)", "<(id)", "=", "[x]", "[xy]", "~", "a~", "new#x", "#", "!h", "\\~", "link/new", "dangling", "../w/n", "./-d/n"})
}

// heredoc makes a here-document; its body goes to the end of the line.
func (g *Generator) heredoc(d *docs) string {
	word := g.pick([]string{"E", "EOF", "E", "'E'", `"E"`, `\E`, `E"F"`, "'E F'", "E-", "é", "$X", "'$X'", `"E$"`, "E\\ F", "-", "''", "{a,b}", "*", "~", "E;", "`E`", "'E'F", "E#", "=E", "!"})
	delimiter := strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(word)
	op := g.pick([]string{"<<", "<<", "<<", "<<-", "<< ", "<<- ", "0<<", "1<<", "3<<"})
	d.bodies.WriteString("\n")
	for range g.r.IntN(3) {
		d.bodies.WriteString(g.pick([]string{"", "", "\t", "\t\t", " ", "\t \t"}))
		d.bodies.WriteString(g.pick([]string{"hi", "$PLAIN", "${X}y", "a 'b", `"`, `\$X`, `a\\b`, "\\`", "$(id)", "`id`", "$((1))", "${X:-y}", "E", "EOF ", " E", "E;", "\tE", "$", "$1", "$'x'", "*", "~", "é", `\a`, "{a,b}", `a\`, "$IFS", "$SPACED", "\\E", "$NL", "<<E", "#", "$PWD", "$_", `\\$X`, `\\\$X`, "$X$", "$-", "${X", "$[1]", "$\"x\"", "a\tb", "$PLAIN\tx", "$EMPTY\ty"}))
		d.bodies.WriteString(g.pick([]string{"\n", "\n", "\n", "\n\n", ""}))
	}
	if body := d.bodies.String(); body[len(body)-1] != '\n' {
		d.bodies.WriteString("\n")
	}
	if g.chance(97) {
		d.bodies.WriteString(g.pick([]string{"", "", "", "\t"}) + delimiter)
	}
	return op + word
}

func (g *Generator) compound(depth int) string {
	inner := g.commandLine(depth + 1)
	return strings.ReplaceAll(g.pick([]string{
		"(@)", "{ @; }", "if @; then @; fi", "for i in a b; do @; done", "while @; do break; done", "! @", "time @", "f() { @; }", "[[ -n x ]] && @",
		"((1)) || @", "case x in x) @;; esac", "coproc @", "$(@)", "`@`", "function f { @; }", "until @; do break; done", "{ @;} >new", "(@)>new", "x=$(@)", "{@}", "}@", "!@", "! ! @", "time -p @", "@ &",
	}), "@", inner)
}

var atoms = []string{
	"a", "b", "-l", "--all", "file", "x.go", "*.go", "*", "?.go", "[ab].go", "[!a].go", "[^a].go", "[a-b]*", "[", "]", "[]", "[a", "a]", ".*", "sub/*", "*/*", "**", "**/*.go", "*/", "./*", "../w/*",
	"{a,b}", "{a,b}.go", "{1..3}", "{3..1}", "{a..c}", "{a}", "{}", "{,}", "{a,b", "a,b}", "{a,{b,c}}", "{1..9..3}", "{a..Z}", "{01..3}", "{-1..1}", "x{,y}", "{*.go,x}", "{a\\,b}", "{'a',b}", "{a,\"b c\"}", "${X}{a,b}", "{1..}", "{..}", "{a..bb}", "{a,b}{c,d}", "{$X,b}",
	"~", "~/x", "~root", "~+", "~-", "a~", "~/*.txt", "--o=~/x", "a=~/x", "a=~", "x:~", "a=b:~/c", "~'/x'", "~/\"x\"", "~\\/x", "'~'", "~/$X", "{~,a}", "{~/x,y}", "\\~", "~0", "a=~:~", "=~", "~/", "~//x", "[~]",
	"$PLAIN", "${PLAIN}", "\"$PLAIN\"", "$EMPTY", "\"$EMPTY\"", "$UNSET", "\"$SPACED\"", "$SPACED", "$STAR", "\"$STAR\"", "$TILDE", "$QUOTE", "\"$QUOTE\"", "$DASH", "$BACK", "\"$BACK\"", "$BRACE", "$NL", "\"$NL\"", "$DOLLAR", "$X", "a$X", "$X.go", "${X}1", "$Xa", "$X/$X",
	"$IFS", "a$IFS", "$PWD", "$OLDPWD", "$HOME", "$PATH", "$_", "$UID", "$EUID", "$RANDOM", "$SECONDS", "$PPID", "$BASH_VERSION", "$HOSTNAME", "$SHLVL", "$LINENO", "$OPTIND", "$PS4", "$BASHPID", "$BASH", "$OSTYPE", "$GROUPS", "$DIRSTACK", "$SHELLOPTS", "$BASHOPTS", "$PIPESTATUS", "$BASH_COMMAND", "$TERM", "$MACHTYPE", "$HOSTTYPE", "$EPOCHSECONDS", "$SRANDOM", "$FUNCNAME", "$REPLY", "$BASH_SUBSHELL", "$COLUMNS", "$LINES", "$SHELL", "$OPTERR", "$PS1", "$HISTCMD",
	"$", "a$", "$?", "$$", "$!", "$#", "$@", "$*", "$-", "$0", "$1", "${", "${X", "${X:-a}", "${#X}", "${!X}", "${X%a}", "${X/a/b}", "${X@P}", "${X[0]}", "$[1+1]", "$((1+1))", "$(id)", "`id`", "<(id)", ">(id)", "$'a\\nb'", "$\"a\"", "$''", "\"$\"", "\"$ \"", "'$X'", "$%", "$,", "\"a$\"", "$/", "$.go", "$=", "\"$'a'\"", "${ id; }", "${| id; }",
	"''", `""`, "'a b'", `"a b"`, `a\ b`, `\*`, `'*'`, `"*"`, `\`, `\\`, `\a`, `"\a"`, `"\$X"`, `"\\"`, "'\\'", `'it'\''s'`, `"it's"`, `"a\"b"`, "'a\nb'", "\"a\nb\"", `a"b"'c'`, `\'`, `\"`, "\"`\"", "\"\\`\"", `\$X`, `"!x"`, `'a`, `"a`, `\{a,b}`, `{a\,b}`, `"{a,b}"`, `[\]a]*`, `["ab"].go`, `[a'b'].go`, `\[ab].go`, `*\*`, `a\*b`, `"a"*`, `*"."go`, `'a'*'.go'`, `\?`, `["x"]`, `[\x]`,
	"#", "a#b", "#c", "\\#c", "!", "!x", "!!", "!$", "a!", "^a^b", "=", "a=b", "a=", "=a", "a=b=c", "A+=b", "a[0]=b", "-", "--", "-c", "-e", "if", "then", "do", "in", "time", "{", "}", "esac", "!", "[[", "]]", "function", "@", "%", "+", ",", ":", ".", "..", "/", "//", "&", "(", ")", ";", "|", "<", ">",
	"é", "é*", "日本", "?.txt", "\u00a0", "a\u00a0b", "“a”", "\u2003", "\u3000", "À", "ﬀ", "\u0301", "🙂", "[é].txt", "[à-ü].txt", "?[.]txt",
	"@(a|b)", "!(a)", "?(a)", "*(a)", "+(a)", "a@(b)", "*.@(go)", "[[:alpha:]].go", "[[:space:]]", "[[.a.]]*", "[[=a=]]*", "[a-", "[z-a]", "[]a]*", "[!]]*", "[[]x]", "[a/b]", "sub/[c]*", "[-a]*", "[a\\]b]*", "*[!o]", ".[!.]*", "[!.]*", "[.]*", "[^.]*", "*\\*b", "link/*", "*/e.go", "sub/deep/../*", "with*", "a?b", "\\[x\\]", "[[x]]", "*'", "-*", "./-*", "*\\", "[a-b]\\.go", "{a,b}*", "*{go,txt}", "[{a,b}].go", "{[ab],x}.go",
}

func (g *Generator) word() string {
	w := g.pick(atoms)
	for g.chance(18) {
		w += g.pick(atoms)
	}
	return w
}

// quote quotes a text for a shell, in one of the ways that people do.
func (g *Generator) quote(text string) string {
	if g.chance(50) && !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	if g.chance(50) {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
