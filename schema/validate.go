package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// validate checks the arguments against the tool's original schema.
func (s *Schema) validate(args map[string]any) (err error) {
	if s.quick != nil && s.quick.accepts(args) {
		return nil
	}
	// A panic in the validator must not let the call through, nor stop the gate.
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Problem: "cannot be checked against the tool's schema"}
		}
	}()
	if !s.bound.holds(s.root, args) {
		return &Error{Problem: "take too long to check against the tool's schema"}
	}
	if err := s.root.Validate(args); err != nil {
		return s.explain(err)
	}
	return nil
}

// explain turns the validator's tree of failures into the one that helps most: the deepest, and among equals the
// first by name, so that the same call always gets the same answer.
func (s *Schema) explain(err error) error {
	top, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return &Error{Problem: "do not fit the tool's schema"}
	}
	var best *Error
	var bestDepth int
	var walk func(*jsonschema.ValidationError)
	walk = func(v *jsonschema.ValidationError) {
		if len(v.Causes) > 0 {
			for _, cause := range v.Causes {
				walk(cause)
			}
			return
		}
		e := s.describe(v)
		depth := len(v.InstanceLocation)
		if best == nil || depth > bestDepth || depth == bestDepth && less(e, best) {
			best, bestDepth = e, depth
		}
	}
	walk(top)
	return best
}

func less(a, b *Error) bool {
	if a.Field != b.Field {
		return a.Field < b.Field
	}
	return a.Problem+a.Want < b.Problem+b.Want
}

// describe words one failure without repeating the value.
func (s *Schema) describe(v *jsonschema.ValidationError) *Error {
	at := v.InstanceLocation
	field := strings.Join(at, ".")
	switch k := v.ErrorKind.(type) {
	case *kind.Type:
		return &Error{Field: field, Problem: "has the wrong type", Want: strings.Join(k.Want, " or ")}
	case *kind.Required:
		missing := slices.Min(k.Missing)
		return &Error{Field: join(at, missing), Problem: "is missing", Want: s.wanted(at, missing)}
	case *kind.AdditionalProperties:
		return &Error{Field: join(at, slices.Min(k.Properties)), Problem: "is not a parameter of this tool"}
	case *kind.Enum:
		return &Error{Field: field, Problem: "is not one of the values it may have", Want: oneOf(k.Want)}
	case *kind.Const:
		return &Error{Field: field, Problem: "is not the value it must have", Want: oneOf([]any{k.Want})}
	case *kind.Format:
		return &Error{Field: field, Problem: "has the wrong form", Want: k.Want}
	case *kind.Pattern, *kind.FalseSchema, *kind.Not, *kind.RefCycle, *kind.InvalidJsonValue, *kind.PropertyNames:
		return &Error{Field: field, Problem: "does not fit the tool's schema"}
	case *kind.MinLength, *kind.MinItems, *kind.MinProperties:
		return &Error{Field: field, Problem: "is too short"}
	case *kind.MaxLength, *kind.MaxItems, *kind.MaxProperties:
		return &Error{Field: field, Problem: "is too long"}
	case *kind.Minimum, *kind.ExclusiveMinimum:
		return &Error{Field: field, Problem: "is too small"}
	case *kind.Maximum, *kind.ExclusiveMaximum:
		return &Error{Field: field, Problem: "is too large"}
	default:
		return &Error{Field: field, Problem: k.LocalizedString(message.NewPrinter(language.English))}
	}
}

func join(at []string, name string) string {
	return strings.Join(append(slices.Clone(at), name), ".")
}

// wanted is the declared type of a missing top-level parameter, if there is just one place that declares it.
func (s *Schema) wanted(at []string, name string) string {
	if len(at) > 0 {
		return ""
	}
	if sub := s.root.Properties[name]; sub != nil && sub.Types != nil {
		return strings.Join(sub.Types.ToStrings(), " or ")
	}
	return ""
}

// maxChoices bounds how many allowed values are listed.
const maxChoices = 12

func oneOf(values []any) string {
	words := make([]string, 0, maxChoices)
	for i, v := range values {
		if i == maxChoices {
			words = append(words, "…")
			break
		}
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		words = append(words, string(text))
	}
	return strings.Join(words, ", ")
}
