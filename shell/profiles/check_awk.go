package profiles

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/benhoyt/goawk/lexer"
	"github.com/benhoyt/goawk/parser"
	"github.com/toolward/toolward/shell"
)

// maxAwkProgram bounds, in bytes, what is parsed, and awkNested finds what is nested too deeply: the parser calls itself
// for every bracket and every sign.
const maxAwkProgram = 4 << 10

var awkNested = regexp.MustCompile(`(?:[!+$(\[{-]\s*){64}`)

// checkAwk looks at the programs of awk. The first operand is one, unless options give others.
func checkAwk(a *arguments) {
	files := a.operands
	var programs []string
	elsewhere := false // the program, or a part of it, stands in a file
	for _, g := range a.given {
		switch g.spelling {
		case "-e", "--source":
			programs = append(programs, g.value)
		case "-f", "--file":
			elsewhere = true
			if g.value == "-" || g.value == "/dev/stdin" { // not a script of the project: whatever is piped in
				a.does(shell.Effect{Kind: shell.Evaluates, Lang: "awk", Via: g.spelling + " " + g.value})
			}
		}
	}
	if programs == nil && !elsewhere {
		if len(files) == 0 {
			return
		}
		programs, files = files[:1], files[1:]
	}
	for _, file := range files {
		if !awkAssignment.MatchString(file) {
			a.word(Role{Name: "reads"}, file, "")
		}
	}
	if len(programs) > 0 {
		a.awkProgram(strings.Join(programs, "\n")) // the pieces make one program
	}
}

// awkAssignment matches operands that set a variable, and are no files.
var awkAssignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Signs that a text may mean something else to other programs named awk than to this parser: collating elements, which
// hide the end of a regular expression; and calls that are hidden in what this parser takes for text.
var (
	awkCollating = regexp.MustCompile(`\[\^?\]?[^\]]*\[[.=]`)
	awkHidden    = regexp.MustCompile(`\bsystem[ \t]*\(|\bgetline\b|@`)
	awkEscape    = regexp.MustCompile(`\\[^nt"\\/]`)
)

// awkProgram adds what a program does.
func (a *arguments) awkProgram(text string) {
	r := awkReader{}
	if !r.read(text) {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "awk", Text: text})
		return
	}
	// Names of files as strings mean the same to every awk only without rare escapes.
	if r.files && awkEscape.MatchString(text) || !r.calls && awkHidden.MatchString(awkNoText(text)) {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "awk", Text: text})
	}
	for _, e := range r.effects {
		a.does(e)
	}
}

// awkNoText takes plain words in slashes and quotes away: /@/ and "system (" are nothing to be looked at.
func awkNoText(text string) string { return awkPlain.ReplaceAllString(text, " ") }

var awkPlain = regexp.MustCompile(`/[\w @.,:-]*/|"[\w @.,:%/()-]*"`)

// awkFunctions are functions of gawk, and of others, that only compute. The parser wants to know that they exist.
var awkFunctions = map[string]any{
	"and": awkFunction, "compl": awkFunction, "gensub": awkFunction, "lshift": awkFunction, "mktime": awkFunction,
	"or": awkFunction, "rshift": awkFunction, "strftime": awkFunction, "strtonum": awkFunction, "systime": awkFunction,
	"typeof": awkFunction, "xor": awkFunction,
}

func awkFunction(...string) string { return "" } // never called

// awkReader finds what a program does outside itself.
type awkReader struct {
	effects []shell.Effect
	files   bool // names of files stand in the program
	calls   bool // system or getline was found
	unclear bool
}

// read parses a program. It reports whether all of it was understood.
func (r *awkReader) read(text string) (understood bool) {
	if len(text) > maxAwkProgram || awkNested.MatchString(text) || awkCollating.MatchString(text) {
		return false
	}
	defer func() {
		if recover() != nil { // the parser gives up on what it cannot imagine
			understood = false
		}
	}()
	program, err := parser.ParseProgram([]byte(text), &parser.ParserConfig{Funcs: awkFunctions})
	if err != nil {
		return false
	}
	r.walk(reflect.ValueOf(program.Program))
	return !r.unclear
}

// walk looks at every node. The types of the tree cannot be named outside the parser, their fields can.
func (r *awkReader) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			r.walk(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.walk(v.Index(i))
		}
	case reflect.Struct:
		r.node(v)
		for i := range v.NumField() {
			r.walk(v.Field(i))
		}
	}
}

// node looks at one node. A test compares the names of types and fields with what the parser makes.
func (r *awkReader) node(v reflect.Value) {
	switch v.Type().Name() {
	case "PrintStmt", "PrintfStmt":
		r.output(v)
	case "GetlineExpr":
		r.calls = true
		if command := v.FieldByName("Command"); !command.IsNil() {
			r.effects = append(r.effects, shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: awkText(command), Via: "getline"})
		}
		r.file(v.FieldByName("File"), shell.Reads, "getline")
	case "CallExpr":
		if fn := v.FieldByName("Func"); fn.Int() == int64(lexer.F_SYSTEM) {
			r.calls = true
			text := ""
			if args := v.FieldByName("Args"); args.Len() > 0 {
				text = awkText(args.Index(0))
			}
			r.effects = append(r.effects, shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: text, Via: "system"})
		}
	}
	for _, field := range []string{"Name", "Array", "Var"} {
		if name := v.FieldByName(field); name.IsValid() && name.Kind() == reflect.String {
			r.name(name.String())
		}
	}
}

// name looks at a variable.
func (r *awkReader) name(name string) {
	switch name {
	case "ENVIRON":
		r.effects = append(r.effects, shell.Effect{Kind: shell.Environment, Via: name})
	case "ARGV", "SYMTAB", "FUNCTAB": // who changes them chooses files that are read, and variables by name
		r.unclear = true
	}
}

// output looks at where a print statement prints to.
func (r *awkReader) output(v reflect.Value) {
	redirect, destination := lexer.Token(v.FieldByName("Redirect").Int()), v.FieldByName("Dest")
	switch {
	case redirect == lexer.ILLEGAL && destination.IsNil():
	case redirect == lexer.GREATER || redirect == lexer.APPEND:
		r.file(destination, shell.Writes, "print")
	default:
		r.effects = append(r.effects, shell.Effect{Kind: shell.Evaluates, Lang: "sh", Text: awkText(destination), Via: "print |"})
	}
}

// file looks at an expression that names a file. Only a plain string tells which.
func (r *awkReader) file(v reflect.Value, kind shell.Kind, via string) {
	if v.IsNil() {
		return
	}
	name, literal := awkString(v)
	switch {
	case !literal || name == "" || strings.HasPrefix(name, "/inet"): // gawk's network
		r.unclear = true
	case slices.Contains([]string{"-", "/dev/stdin", "/dev/stdout", "/dev/stderr"}, name):
	default:
		r.files = true
		r.effects = append(r.effects, shell.Effect{Kind: kind, Path: name, Via: via})
	}
}

// awkString gives the value of an expression that is a string, in parentheses perhaps.
func awkString(v reflect.Value) (string, bool) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch {
	case v.Kind() != reflect.Struct:
		return "", false
	case v.Type().Name() == "GroupingExpr":
		return awkString(v.FieldByName("Expr"))
	case v.Type().Name() == "StrExpr":
		return v.FieldByName("Value").String(), true
	}
	return "", false
}

// awkText shows people an expression.
func awkText(v reflect.Value) string {
	if text, ok := awkString(v); ok {
		return text
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String()
	}
	return ""
}
