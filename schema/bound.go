package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchemas = 5_000   // different subschemas of one schema
	maxSteps   = 100_000 // subschemas applied while one set of arguments is checked
)

// bound keeps hostile schemas from stopping the gate. Thirty levels of "allOf": [next, next] are a billion checks
// in a kilobyte; so are recursive references that branch. Before the validator runs, the same walk is counted
// without doing the work, and refused when it is too long.
type bound struct {
	dynamic   map[string][]*jsonschema.Schema // what a dynamic reference may lead to, by anchor
	recursive []*jsonschema.Schema            // what a recursive reference may lead to
}

func newBound(root *jsonschema.Schema) (bound, error) {
	b := bound{dynamic: map[string][]*jsonschema.Schema{}}
	seen := map[*jsonschema.Schema]bool{root: true}
	queue := []*jsonschema.Schema{root}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if s.DynamicAnchor != "" {
			b.dynamic[s.DynamicAnchor] = append(b.dynamic[s.DynamicAnchor], s)
		}
		if s.RecursiveAnchor {
			b.recursive = append(b.recursive, s)
		}
		for _, sub := range everySub(s) {
			if sub != nil && !seen[sub] {
				seen[sub] = true
				queue = append(queue, sub)
			}
		}
		if len(seen) > maxSchemas {
			return bound{}, fmt.Errorf("schema: more than %d subschemas", maxSchemas)
		}
	}
	return b, nil
}

// holds reports whether checking v against s stays within maxSteps.
func (b *bound) holds(s *jsonschema.Schema, v any) bool {
	steps := stepCounter{bound: b, left: maxSteps}
	steps.apply(s, v, 0)
	return steps.left >= 0
}

type stepCounter struct {
	bound *bound
	left  int
}

// apply counts the application of s to v; same is how many schemas have been applied to this very value without a
// break, which only a cycle of references makes large. The validator reports such a cycle itself.
func (c *stepCounter) apply(s *jsonschema.Schema, v any, same int) {
	if s == nil || c.left < 0 {
		return
	}
	c.left--
	if same > maxSchemas {
		c.left = -1
		return
	}
	for _, sub := range sameInstance(s) {
		c.apply(sub, v, same+1)
	}
	c.apply(s.Not, v, same+1)
	if s.DynamicRef != nil {
		for _, sub := range c.bound.dynamic[s.DynamicRef.Anchor] {
			if sub != s.DynamicRef.Ref {
				c.apply(sub, v, same+1)
			}
		}
	}
	if s.RecursiveRef != nil {
		for _, sub := range c.bound.recursive {
			if sub != s.RecursiveRef {
				c.apply(sub, v, same+1)
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(s, v)
	case []any:
		c.array(s, v)
	}
}

func (c *stepCounter) object(s *jsonschema.Schema, object map[string]any) {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, v := range object {
		if c.left < 0 {
			return
		}
		c.apply(s.Properties[name], v, 0)
		c.left -= len(s.PatternProperties)
		for pattern, sub := range s.PatternProperties {
			if pattern.MatchString(name) {
				c.apply(sub, v, 0)
			}
		}
		c.apply(additional, v, 0)
		c.apply(s.UnevaluatedProperties, v, 0)
		c.apply(s.PropertyNames, name, 0)
	}
}

func (c *stepCounter) array(s *jsonschema.Schema, list []any) {
	each, _ := s.Items.(*jsonschema.Schema)
	tuple, _ := s.Items.([]*jsonschema.Schema)
	additional, _ := s.AdditionalItems.(*jsonschema.Schema)
	for i, v := range list {
		if c.left < 0 {
			return
		}
		if i < len(tuple) {
			c.apply(tuple[i], v, 0)
		} else {
			c.apply(additional, v, 0)
		}
		if i < len(s.PrefixItems) {
			c.apply(s.PrefixItems[i], v, 0)
		} else {
			c.apply(s.Items2020, v, 0)
		}
		c.apply(each, v, 0)
		c.apply(s.Contains, v, 0)
		c.apply(s.UnevaluatedItems, v, 0)
	}
}

// everySub lists all schemas directly below s; some may be nil.
func everySub(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := append(sameInstance(s), s.Not, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema)
	for _, sub := range s.Properties {
		subs = append(subs, sub)
	}
	for _, sub := range s.PatternProperties {
		subs = append(subs, sub)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch v := v.(type) {
		case *jsonschema.Schema:
			subs = append(subs, v)
		case []*jsonschema.Schema:
			subs = append(subs, v...)
		}
	}
	return append(subs, s.PrefixItems...)
}
