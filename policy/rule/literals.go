package rule

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

func isText(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	_, ok := e.AsLiteral().(types.String)
	return ok
}

func textOf(e ast.Expr) string { s, _ := e.AsLiteral().(types.String); return string(s) }

// textsOf reads a list of texts.
func textsOf(e ast.Expr) ([]string, bool) {
	if e.Kind() != ast.ListKind {
		return nil, false
	}
	var out []string
	for _, element := range e.AsList().Elements() {
		if !isText(element) {
			return nil, false
		}
		out = append(out, textOf(element))
	}
	return out, true
}
