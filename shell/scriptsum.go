package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// mostComputed is how large numbers may get: every shell computes with these alike.
const mostComputed = 1 << 30

// computed is the value of a sum of numbers and of variables that are numbers.
func (s *scripted) computed(expr syntax.ArithmExpr) (n int, ok bool) {
	switch x := expr.(type) {
	case *syntax.ParenArithm:
		return s.computed(x.X)
	case *syntax.Word:
		text := x.Lit()
		if len(x.Parts) == 1 {
			if p, ok := x.Parts[0].(*syntax.ParamExp); ok {
				text, _ = plainParameter(s.text[p.Pos().Offset():p.End().Offset()])
			}
		}
		if v, known := s.known[text]; known && !v.raw && !v.lost {
			text = v.text
		}
		if !IsNumber(text) || len(text) > 9 || len(text) > 1 && text[0] == '0' { // "010" is eight
			return 0, false
		}
		n, err := strconv.Atoi(text)
		return n, err == nil
	case *syntax.BinaryArithm:
		a, ok := s.computed(x.X)
		b, too := s.computed(x.Y)
		if !ok || !too {
			return 0, false
		}
		switch x.Op {
		case syntax.Add:
			n = a + b
		case syntax.Sub:
			n = a - b
		case syntax.Mul:
			n = a * b
		default:
			return 0, false
		}
		return n, n >= 0 && n < mostComputed
	}
	return 0, false
}
