package rule

import (
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/toolward/toolward/policy/glob"
)

// Limits of one condition, refused when it is compiled.
const (
	maxText    = 8192 // characters of an expression
	maxNodes   = 1000 // operators, names and constants of an expression
	maxNesting = 64   // of parentheses, calls and lists
	maxFolds   = 2    // all, exists, exists_one, map and filter inside each other
	maxPattern = 500  // instructions of a compiled regular expression
)

// Names of the functions that are ours.
const (
	fnPathUnder = "pathUnder"
	fnHostIn    = "hostIn"
	fnGlob      = "glob"
	fnMatches   = "matches"
)

// language is the environment that conditions are compiled in. It is made at first use: most configurations have no
// rules, and no start of the program pays for them.
var language = sync.OnceValue(func() *cel.Env {
	options := []cel.EnvOption{
		cel.ParserExpressionSizeLimit(maxText),
		cel.ParserRecursionLimit(maxNesting),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ExpressionNestingDepthLimit(maxNesting),
		cel.RegexProgramSizeLimit(maxPattern),
		cel.ASTValidators(cel.ValidateComprehensionNestingLimit(maxFolds)),
		cel.CrossTypeNumericComparisons(true),
		cel.Types(cel.NativeTypeFor[Target](cel.NativeTypeAlias("Target"), types.ParseStructTags(true))),
		cel.Variable(paramsName, cel.MapType(cel.StringType, cel.DynType)),
		cel.Function(fnPathUnder, cel.Overload("pathUnder_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return answer(pathUnder(string(a.(types.String)), string(b.(types.String))))
			}))),
		cel.Function(fnGlob, cel.Overload("glob_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				return types.Bool(glob.Match(string(b.(types.String)), string(a.(types.String))))
			}))),
		cel.Function(fnHostIn, cel.Overload("hostIn_string_list", []*cel.Type{cel.StringType, cel.ListType(cel.StringType)}, cel.BoolType, cel.BinaryBinding(hostInValues))),
	}
	for _, v := range variables {
		options = append(options, cel.Variable(v.name, v.celType()))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic("rule: the language of conditions does not compile: " + err.Error())
	}
	return env
})

func answer(yes bool, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(yes)
}

// hostInValues is hostIn where the list was not prepared.
func hostInValues(text, list ref.Val) ref.Val {
	lister := list.(traits.Lister)
	var entries []string
	for it := lister.Iterator(); it.HasNext() == types.True; {
		entry, ok := it.Next().(types.String)
		if !ok {
			return types.NewErr("hostIn takes a list of texts")
		}
		entries = append(entries, string(entry))
	}
	hosts, err := newHostList(entries)
	if err != nil {
		return types.WrapErr(err)
	}
	return answer(hosts.contains(string(text.(types.String))))
}

// Costs are in CEL's units: about one for each step, and for each ten characters of a text that is read.
const (
	// maxCost bounds what a condition may cost for a small call; one that could cost more is refused when it is
	// compiled.
	maxCost = 2_000_000
	// maxCostLarge stops one condition on a call that is not small.
	maxCostLarge = 5_000_000
	// maxCostCall bounds all conditions together on a call that is not small.
	maxCostCall = 20_000_000
)

// Cost of our functions: reading both texts, and for glob going back for each star.
func pathUnderCost(file, dir uint64) uint64 {
	return 10 + (min(file, longestPath)+min(dir, longestPath))/10
}
func hostInCost(text, hosts uint64) uint64 { return 100 + min(text, longestURL)/10 + 10*hosts }
func globCost(text, pattern uint64) uint64 {
	return cost.SafeAdd(1, cost.SafeMultiply(text/10+1, pattern/10+1))
}

// sizes bounds the sizes of what a small call holds, for estimates.
type sizes struct{}

// smallElement is the size of an element of a list or of a map of a small call: not the most there is, but with so
// many elements as smallCall has room for it stands for more than all of the call together.
const smallElement = 256

func (sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	most := uint64(smallCall)
	if len(path) > 1 {
		switch path[len(path)-1] {
		case "@items", "@keys", "@values":
			most = smallElement
		}
	} else if i, ok := positions[path[0]]; ok && variables[i].text == nil {
		most = smallList
	}
	return &cost.SizeEstimate{Min: 0, Max: most}
}

func (sizes) EstimateCallCost(function, _ string, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	var fn func(a, b uint64) uint64
	switch function {
	case fnPathUnder:
		fn = pathUnderCost
	case fnHostIn:
		fn = hostInCost
	case fnGlob:
		fn = globCost
	default:
		return nil
	}
	if target != nil || len(args) != 2 {
		return nil
	}
	a, b := cost.EstimateSize(sizes{}, args[0]), cost.EstimateSize(sizes{}, args[1])
	return &cost.CallEstimate{CostEstimate: cost.RangedCostEstimate(fn(a.Min, b.Min), fn(a.Max, b.Max))}
}

// meter measures our functions while a condition on a large call runs.
type meter struct{}

func (meter) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var fn func(a, b uint64) uint64
	switch function {
	case fnPathUnder:
		fn = pathUnderCost
	case fnHostIn:
		fn = hostInCost
	case fnGlob:
		fn = globCost
	default:
		return nil
	}
	c := fn(cost.ActualSize(args[0]), cost.ActualSize(args[1]))
	return &c
}
