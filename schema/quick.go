package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// quick recognizes valid values of the plain schemas that most tools have, ten times faster than the full
// validator. It only ever says "certainly valid": whatever it cannot confirm goes to the full validator, so the
// verdict is always that one's.
type quick struct {
	types      typeSet
	enum       map[string]bool // nil: no enum
	properties map[string]*quick
	required   []string
	closed     bool   // no property but those above
	additional *quick // for other properties; nil: anything, unless closed
	items      *quick // nil: anything
	anyOf      []*quick
	minItems   int
	maxItems   int
	minLength  int
	maxLength  int
	pattern    jsonschema.Regexp
	bounded    bool // minimum and maximum count
	minimum    int64
	maximum    int64
}

// typeSet is a set of JSON types.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeNumber
	typeString
	typeArray
	typeObject
	typeAny typeSet = math.MaxUint8
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeNumber | typeInteger,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// newQuick returns nil for a schema that is not plain enough.
func newQuick(s *jsonschema.Schema) *quick {
	if s.Bool != nil && *s.Bool {
		return &quick{types: typeAny, maxItems: math.MaxInt, maxLength: math.MaxInt}
	}
	if !plain(s) {
		return nil
	}
	q := &quick{
		types:    typeAny,
		required: s.Required,
		minItems: orInt(s.MinItems, 0), maxItems: orInt(s.MaxItems, math.MaxInt),
		minLength: orInt(s.MinLength, 0), maxLength: orInt(s.MaxLength, math.MaxInt),
		pattern: s.Pattern,
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		q.types = 0
		for _, name := range s.Types.ToStrings() {
			q.types |= typeNames[name]
		}
	}
	return q.fill(s)
}

// plain reports whether all keywords in use are ones that quick understands.
func plain(s *jsonschema.Schema) bool {
	_, tuple := s.Items.([]*jsonschema.Schema)
	return s.Bool == nil && s.Ref == nil && s.RecursiveRef == nil && s.DynamicRef == nil && s.Const == nil &&
		s.Not == nil && s.AllOf == nil && s.OneOf == nil &&
		s.If == nil && s.Then == nil && s.Else == nil && s.Format == nil &&
		s.MaxProperties == nil && s.MinProperties == nil && s.PropertyNames == nil &&
		len(s.PatternProperties) == 0 && len(s.Dependencies) == 0 && len(s.DependentRequired) == 0 &&
		len(s.DependentSchemas) == 0 && s.UnevaluatedProperties == nil &&
		!s.UniqueItems && s.Contains == nil && s.MinContains == nil && s.MaxContains == nil && !tuple &&
		s.AdditionalItems == nil && len(s.PrefixItems) == 0 && s.UnevaluatedItems == nil &&
		s.ContentEncoding == nil && s.ContentMediaType == nil && s.ContentSchema == nil &&
		s.MultipleOf == nil && len(s.Extensions) == 0
}

// fill adds the parts that may turn out not to be plain.
func (q *quick) fill(s *jsonschema.Schema) *quick {
	if s.Enum != nil {
		q.enum = map[string]bool{}
		for _, v := range s.Enum.Values {
			if text, ok := v.(string); ok {
				q.enum[text] = true
			}
		}
	}
	if len(s.Properties) > 0 {
		q.properties = make(map[string]*quick, len(s.Properties))
	}
	for name, sub := range s.Properties {
		if q.properties[name] = newQuick(sub); q.properties[name] == nil {
			return nil
		}
	}
	switch more := s.AdditionalProperties.(type) {
	case bool:
		q.closed = !more
	case *jsonschema.Schema:
		if more.Bool != nil {
			q.closed = !*more.Bool
		} else if q.additional = newQuick(more); q.additional == nil {
			return nil
		}
	}
	items := s.Items2020
	if items == nil {
		items, _ = s.Items.(*jsonschema.Schema)
	}
	if items != nil {
		if q.items = newQuick(items); q.items == nil {
			return nil
		}
	}
	for _, sub := range s.AnyOf {
		variant := newQuick(sub)
		if variant == nil {
			return nil
		}
		q.anyOf = append(q.anyOf, variant)
	}
	return q.bounds(s)
}

// bounds takes over limits of numbers if they are whole; a whole number above an exclusive limit is at least the
// next one.
func (q *quick) bounds(s *jsonschema.Schema) *quick {
	q.minimum, q.maximum = math.MinInt64, math.MaxInt64
	for _, limit := range []struct {
		value *big.Rat
		lower bool
		step  int64
	}{{s.Minimum, true, 0}, {s.ExclusiveMinimum, true, 1}, {s.Maximum, false, 0}, {s.ExclusiveMaximum, false, -1}} {
		if limit.value == nil {
			continue
		}
		n := limit.value.Num()
		if !limit.value.IsInt() || n.BitLen() > 62 {
			return nil
		}
		q.bounded = true
		if limit.lower {
			q.minimum = max(q.minimum, n.Int64()+limit.step)
		} else {
			q.maximum = min(q.maximum, n.Int64()+limit.step)
		}
	}
	return q
}

func orInt(p *int, absent int) int {
	if p == nil {
		return absent
	}
	return *p
}

// accepts reports whether v is certainly valid.
func (q *quick) accepts(v any) bool {
	if q.anyOf != nil && !slices.ContainsFunc(q.anyOf, func(variant *quick) bool { return variant.accepts(v) }) {
		return false
	}
	switch v := v.(type) {
	case string:
		return q.types&typeString != 0 && q.acceptsText(v)
	case map[string]any:
		return q.types&typeObject != 0 && q.enum == nil && q.acceptsObject(v)
	case []any:
		return q.types&typeArray != 0 && q.enum == nil && q.acceptsList(v)
	case json.Number:
		return q.enum == nil && q.acceptsNumber(v)
	case bool:
		return q.types&typeBoolean != 0 && q.enum == nil
	case nil:
		return q.types&typeNull != 0 && q.enum == nil
	}
	return false
}

func (q *quick) acceptsText(text string) bool {
	if q.enum != nil && !q.enum[text] {
		return false
	}
	if q.minLength > 0 || q.maxLength < len(text) {
		if n := utf8.RuneCountInString(text); n < q.minLength || n > q.maxLength {
			return false
		}
	}
	return q.pattern == nil || q.pattern.MatchString(text)
}

func (q *quick) acceptsObject(object map[string]any) bool {
	for _, name := range q.required {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	for name, v := range object {
		sub, ok := q.properties[name]
		if !ok {
			if q.closed {
				return false
			}
			sub = q.additional
		}
		if sub != nil && !sub.accepts(v) {
			return false
		}
	}
	return true
}

func (q *quick) acceptsList(list []any) bool {
	if len(list) < q.minItems || len(list) > q.maxItems {
		return false
	}
	if q.items == nil {
		return true
	}
	for _, v := range list {
		if !q.items.accepts(v) {
			return false
		}
	}
	return true
}

func (q *quick) acceptsNumber(n json.Number) bool {
	whole, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		return q.types&typeNumber != 0 && !q.bounded
	}
	return q.types&(typeInteger|typeNumber) != 0 && (!q.bounded || whole >= q.minimum && whole <= q.maximum)
}
