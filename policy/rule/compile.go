package rule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Condition is a compiled expression. It is immutable and safe for concurrent use.
type Condition struct {
	quick   cel.Program // for small calls, whose cost was bounded when it was compiled
	metered cel.Program // for all others: stops when it has cost too much
	reads   []string    // variables, in order
	demand  *demand     // what it can be looked up by; nil if there is nothing
}

// Reads lists the variables that the condition looks at, in order; "params" stands for all parameters, and
// "facts.targets.path" for what the caller wrote to name a file.
func (c *Condition) Reads() []string { return slices.Clone(c.reads) }

// Error is a mistake in an expression.
type Error struct {
	Line, Column int // from 1, in characters; 0 if the mistake is nowhere in particular
	Problem      string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.Problem
	case e.Line == 1:
		return fmt.Sprintf("column %d of the expression: %s", e.Column, e.Problem)
	}
	return fmt.Sprintf("line %d, column %d of the expression: %s", e.Line, e.Column, e.Problem)
}

// Compile reads an expression. Errors are *Error.
func Compile(text string) (*Condition, error) {
	if !utf8.ValidString(text) {
		return nil, &Error{Problem: "the expression is not UTF-8"}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Problem: `the expression is blank; write a condition, or "true" for every call`}
	}
	checked, issues := language().Compile(text)
	if issues.Err() != nil {
		return nil, issueError(issues, text)
	}
	if checked.OutputType() != cel.BoolType {
		return nil, &Error{Problem: fmt.Sprintf("the expression is of type %s, a condition must be of type bool: compare with something", checked.OutputType())}
	}
	native := checked.NativeRep()
	if err := inspect(native); err != nil {
		return nil, err
	}
	estimate, err := language().EstimateCost(checked, sizes{})
	if err != nil {
		return nil, &Error{Problem: "its cost cannot be estimated: " + err.Error()}
	}
	if estimate.Max > maxCost {
		return nil, &Error{Problem: fmt.Sprintf("it may cost %d units even on a small call, more than the %d that are allowed; "+
			"look at fewer elements, or use shorter patterns", estimate.Max, uint64(maxCost))}
	}
	c, err := plan(checked)
	if err != nil {
		return nil, err
	}
	c.reads = readsOf(native)
	return c, nil
}

// readsOf collects the variables of an expression.
func readsOf(checked *ast.AST) []string {
	var names []string
	path := false
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			name := e.AsIdent()
			if _, known := positions[name]; known || name == paramsName {
				names = append(names, name)
			}
		case ast.SelectKind:
			path = path || e.AsSelect().FieldName() == "path"
		}
	}))
	if path && slices.Contains(names, "facts.targets") {
		names = append(names, "facts.targets.path")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// plan makes the two programs of a condition.
func plan(checked *cel.Ast) (*Condition, error) {
	quick, err := language().Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(prepareHosts))
	if err != nil {
		return nil, &Error{Problem: err.Error()}
	}
	metered, err := language().Program(checked, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostTracking(meter{}), cel.CostLimit(maxCostLarge))
	if err != nil {
		return nil, &Error{Problem: err.Error()}
	}
	return &Condition{quick: quick, metered: metered, demand: demandOf(checked.NativeRep().Expr())}, nil
}

// issueError takes the first mistake: those that follow are often its consequences.
func issueError(issues *cel.Issues, text string) *Error {
	all := issues.Errors()
	if len(all) == 0 {
		return &Error{Problem: issues.Err().Error()}
	}
	first := all[0]
	problem, _, _ := strings.Cut(first.Message, " (in container")
	problem = strings.TrimPrefix(problem, "Syntax error: ")
	if name, ok := strings.CutPrefix(problem, "undeclared reference to '"); ok {
		name, _, _ = strings.Cut(name, "'")
		problem = undeclared(name, rest(text, first.Location.Line(), first.Location.Column()))
	}
	return &Error{Line: max(first.Location.Line(), 1), Column: max(first.Location.Column(), 0) + 1, Problem: clip(problem)}
}

// rest is what stands in a text from a place on, in lines from 1 and characters from 0.
func rest(text string, line, column int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	characters := []rune(lines[line-1])
	return string(characters[min(max(column, 0), len(characters)):])
}

// undeclared says what is there instead of a name that is not. The language complains about "facts.comand.contains" or
// about "facts" alone; what stands there tells the field.
func undeclared(name, text string) string {
	if !strings.Contains(name, ".") && strings.HasPrefix(text, name+".") {
		end := strings.IndexFunc(text[len(name)+1:], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if end < 0 {
			end = len(text) - len(name) - 1
		}
		name = text[:len(name)+1+end]
	}
	section, rest, dotted := strings.Cut(name, ".")
	var fields []string
	for _, v := range variables {
		if field, ok := strings.CutPrefix(v.name, section+"."); ok {
			fields = append(fields, field)
		}
	}
	if dotted && fields != nil {
		field, _, _ := strings.Cut(rest, ".")
		return fmt.Sprintf("%s has no %q; it has %s", section, field, strings.Join(fields, ", "))
	}
	return fmt.Sprintf("there is no %q; variables are params, facts, caller, level and tool, "+
		"functions of ours pathUnder, hostIn and glob", name)
}

// clip bounds what an error repeats of an expression.
func clip(problem string) string {
	const most = 600
	if len(problem) <= most {
		return problem
	}
	return strings.ToValidUTF8(problem[:most], "") + "…"
}

// errTooMuch says that the conditions on one call cost too much together.
var errTooMuch = errors.New("the conditions on this call cost too much together")

// Holds evaluates the condition. An error means that nobody knows.
func (c *Condition) Holds(call *Call) (bool, error) {
	if call.small {
		value, _, err := c.quick.Eval(call)
		return value == types.True, err
	}
	if call.spent > maxCostCall {
		return false, errTooMuch
	}
	value, details, err := c.metered.Eval(call)
	if spent := details.ActualCost(); spent != nil {
		call.spent += *spent
	}
	return value == types.True, err
}

// inspect checks what the types of the language do not: patterns, hosts and directories are written in the expression
// itself, so that mistakes in them are found now, and words that a variable can never equal are found too.
func inspect(checked *ast.AST) error {
	var first *Error
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first != nil || e.Kind() != ast.CallKind {
			return
		}
		at, err := inspectCall(e.AsCall())
		if err == nil {
			return
		}
		first = &Error{Problem: err.Error()}
		if place := checked.SourceInfo().GetStartLocation(at.ID()); place.Line() > 0 {
			first.Line, first.Column = place.Line(), place.Column()+1
		}
	}))
	if first != nil {
		return first
	}
	return nil
}

// inspectCall returns the argument that is wrong, and why.
func inspectCall(call ast.CallExpr) (ast.Expr, error) {
	args := call.Args()
	switch call.FunctionName() {
	case fnMatches:
		pattern := args[len(args)-1]
		if call.IsMemberFunction() {
			pattern = args[0]
		}
		if !isText(pattern) {
			return pattern, errors.New("the pattern of matches must be written as a text in the expression")
		}
		if _, err := regexp.Compile(textOf(pattern)); err != nil {
			return pattern, err
		}
	case fnGlob:
		if !isText(args[1]) {
			return args[1], errors.New("the pattern of glob must be written as a text in the expression")
		}
	case fnPathUnder:
		if isText(args[1]) {
			if err := checkPath(textOf(args[1])); err != nil {
				return args[1], fmt.Errorf("%q: %w", textOf(args[1]), err)
			}
		}
	case fnHostIn:
		entries, ok := textsOf(args[1])
		if !ok {
			return args[1], errors.New(`the hosts of hostIn must be written as a list of texts in the expression: ["example.org", "*.example.org"]`)
		}
		if _, err := newHostList(entries); err != nil {
			return args[1], err
		}
	case operators.Equals, operators.NotEquals:
		return inspectWord(args[0], args[1])
	case operators.In:
		if words, ok := textsOf(args[1]); ok {
			return inspectWords(args[0], args[1], words)
		}
	}
	return nil, nil
}

func inspectWord(a, b ast.Expr) (ast.Expr, error) {
	if isText(a) {
		a, b = b, a
	}
	if isText(b) {
		return inspectWords(a, b, []string{textOf(b)})
	}
	return nil, nil
}

func inspectWords(name, at ast.Expr, words []string) (ast.Expr, error) {
	if name.Kind() != ast.IdentKind {
		return nil, nil
	}
	i, ok := positions[name.AsIdent()]
	if !ok || variables[i].words == nil {
		return nil, nil
	}
	for _, w := range words {
		if !slices.Contains(variables[i].words, w) {
			return at, fmt.Errorf("%s is never %q; it is one of %s", variables[i].name, w, strings.Join(quoted(variables[i].words), ", "))
		}
	}
	return nil, nil
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", w)
	}
	return out
}
