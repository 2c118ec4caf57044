package rule

import (
	"path"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
)

// test is how a value is compared with what a condition demands.
type test uint8

const (
	testEqual  test = iota
	testPath        // pathUnder
	testHost        // hostIn
	testPrefix      // startsWith, and a pattern that begins with a fixed text
)

// attribute is something of a call that a condition demands a value of.
type attribute struct {
	variable int    // position among variables; -1: the parameter
	param    string // its name
	each     bool   // any element of a list
	test     test
}

// demand says that a condition is false unless the attribute has one of the keys: a value; a directory that a path is
// under; a host, or with a dot in front a domain that a host is below; a text that it begins with. Only what makes the condition false without
// doubt is demanded: an attribute that is not there or cannot be read decides nothing.
type demand struct {
	of   attribute
	keys []string
}

// demandOf reads off the checked expression what it demands, or nil. In "a && b" what either demands is enough, because
// false && anything is false, even if the other fails.
func demandOf(e ast.Expr) *demand { return demandIn(e, "") }

// demandIn is demandOf where element is the name that stands for an element of a list, if there is one. The attribute
// of a demand on it is -2 until the list is known.
func demandIn(e ast.Expr, element string) *demand {
	switch e.Kind() {
	case ast.CallKind:
		return demandOfCall(e.AsCall(), element)
	case ast.ComprehensionKind:
		if element == "" {
			return demandOfExists(e.AsComprehension())
		}
	}
	return nil
}

func demandOfCall(call ast.CallExpr, element string) *demand {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		for _, term := range args {
			if d := demandIn(term, element); d != nil {
				return d
			}
		}
	case operators.LogicalOr:
		return demandOfEither(args, element)
	case operators.Equals:
		if isText(args[0]) {
			args = []ast.Expr{args[1], args[0]}
		}
		if isText(args[1]) {
			return demandOn(args[0], element, testEqual, textOf(args[1]))
		}
	case operators.In:
		if words, ok := textsOf(args[1]); ok {
			return demandOn(args[0], element, testEqual, words...)
		}
		if isText(args[0]) {
			return demandOnList(args[1], demand{keys: []string{textOf(args[0])}})
		}
	case fnPathUnder:
		if isText(args[1]) {
			return demandOn(args[0], element, testPath, path.Clean(textOf(args[1])))
		}
	case fnHostIn:
		return demandOnHost(args, element)
	case overloads.StartsWith:
		if call.IsMemberFunction() && isText(args[0]) && textOf(args[0]) != "" {
			return demandOn(call.Target(), element, testPrefix, textOf(args[0]))
		}
	case fnMatches:
		return demandOnPattern(call, element)
	}
	return nil
}

// demandOfEither is met if all sides demand something of one attribute.
func demandOfEither(sides []ast.Expr, element string) *demand {
	var all *demand
	for _, side := range sides {
		d := demandIn(side, element)
		switch {
		case d == nil || all != nil && d.of != all.of:
			return nil
		case all == nil:
			all = d
		default:
			all.keys = append(all.keys, d.keys...)
		}
	}
	return all
}

func demandOnHost(args []ast.Expr, element string) *demand {
	entries, _ := textsOf(args[1])
	hosts, err := newHostList(entries)
	if err != nil {
		return nil
	}
	var keys []string
	for _, h := range hosts {
		if h.subdomains {
			keys = append(keys, "."+h.host)
			continue
		}
		keys = append(keys, h.host)
	}
	return demandOn(args[0], element, testHost, keys...)
}

// demandOnPattern reads the text that everything begins with that an anchored pattern matches.
func demandOnPattern(call ast.CallExpr, element string) *demand {
	args := call.Args()
	if call.IsMemberFunction() {
		args = []ast.Expr{call.Target(), args[0]}
	}
	pattern, err := syntax.Parse(textOf(args[1]), syntax.Perl)
	if err != nil || pattern.Op != syntax.OpConcat || len(pattern.Sub) < 2 || pattern.Sub[0].Op != syntax.OpBeginText {
		return nil
	}
	first := pattern.Sub[1]
	if first.Op != syntax.OpLiteral || first.Flags&syntax.FoldCase != 0 || slices.Contains(first.Rune, utf8.RuneError) {
		return nil
	}
	return demandOn(args[0], element, testPrefix, string(first.Rune))
}

const ofElement = -2

// demandOn is a demand on a variable that is a text, a parameter, or the element of the list around.
func demandOn(e ast.Expr, element string, by test, keys ...string) *demand {
	d := &demand{of: attribute{test: by}, keys: keys}
	switch e.Kind() {
	case ast.IdentKind:
		if element != "" && e.AsIdent() == element {
			d.of.variable = ofElement
			return d
		}
		i, ok := positions[e.AsIdent()]
		if !ok || variables[i].text == nil {
			return nil
		}
		d.of.variable = i
		return d
	case ast.SelectKind:
		field := e.AsSelect()
		if field.IsTestOnly() || field.Operand().Kind() != ast.IdentKind || field.Operand().AsIdent() != paramsName || element == paramsName {
			return nil
		}
		d.of.variable, d.of.param = -1, field.FieldName()
		return d
	}
	return nil
}

// demandOnList turns a demand on an element into one on any element of a list.
func demandOnList(list ast.Expr, d demand) *demand {
	if list.Kind() != ast.IdentKind {
		return nil
	}
	i, ok := positions[list.AsIdent()]
	if !ok || variables[i].list == nil {
		return nil
	}
	d.of.variable, d.of.each = i, true
	return &d
}

// demandOfExists reads list.exists(element, demand).
func demandOfExists(c ast.ComprehensionExpr) *demand {
	if c.HasIterVar2() || c.AccuInit().Kind() != ast.LiteralKind || c.AccuInit().AsLiteral().Value() != false ||
		c.Result().Kind() != ast.IdentKind || c.Result().AsIdent() != c.AccuVar() || c.LoopStep().Kind() != ast.CallKind {
		return nil
	}
	step := c.LoopStep().AsCall()
	if step.FunctionName() != operators.LogicalOr || len(step.Args()) != 2 ||
		step.Args()[0].Kind() != ast.IdentKind || step.Args()[0].AsIdent() != c.AccuVar() || strings.Contains(c.IterVar(), ".") {
		return nil
	}
	d := demandIn(step.Args()[1], c.IterVar())
	if d == nil || d.of.variable != ofElement {
		return nil
	}
	return demandOnList(c.IterRange(), *d)
}

// text is the value of an attribute; false if there is none that tells anything.
func (a *attribute) text(c *Call) (string, bool) {
	if a.variable >= 0 {
		return variables[a.variable].text(c), true
	}
	if value, ok := c.request.Params.String(a.param); ok {
		return value, true
	}
	return "", false
}

// list is the values of an attribute that is a list.
func (a *attribute) list(c *Call) []string { return variables[a.variable].list(c) }
