package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// declared is what a schema says about the names of top-level properties, gathered from the root and from
// everything that applies to the same object: references, allOf, anyOf, oneOf, conditions.
type declared struct {
	names    map[string]bool
	patterns []jsonschema.Regexp
	open     bool // some part admits further properties expressly
}

func declaredBy(root *jsonschema.Schema) declared {
	d := declared{names: map[string]bool{}}
	seen := map[*jsonschema.Schema]bool{}
	var walk func(*jsonschema.Schema)
	walk = func(s *jsonschema.Schema) {
		if s == nil || seen[s] {
			return
		}
		seen[s] = true
		for name := range s.Properties {
			d.names[name] = true
		}
		for pattern := range s.PatternProperties {
			d.patterns = append(d.patterns, pattern)
		}
		d.open = d.open || admitsMore(s)
		for _, sub := range sameInstance(s) {
			walk(sub)
		}
	}
	walk(root)
	return d
}

// admitsMore reports whether the schema admits further properties in so many words. Saying nothing is not
// admitting, although JSON Schema reads it so: authors who say nothing do not expect more.
func admitsMore(s *jsonschema.Schema) bool {
	switch more := s.AdditionalProperties.(type) {
	case bool:
		if more {
			return true
		}
	case *jsonschema.Schema:
		if more.Bool == nil || *more.Bool {
			return true
		}
	}
	more := s.UnevaluatedProperties
	return more != nil && (more.Bool == nil || *more.Bool)
}

func (d *declared) admits(name string) bool {
	if d.open {
		return true
	}
	for _, pattern := range d.patterns {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// sameInstance lists the schemas that a schema applies to the very value it is applied to, except through dynamic
// references. "not" is left out: what it describes is not declared.
func sameInstance(s *jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	add := func(list ...*jsonschema.Schema) {
		for _, sub := range list {
			if sub != nil {
				subs = append(subs, sub)
			}
		}
	}
	add(s.Ref, s.RecursiveRef, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			add(sub)
		}
	}
	return subs
}
