package importer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads TOML.
func parseTOML(file string, data []byte) (*node, error) {
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		place := Place{file, 1, 1}
		if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
			place.Line, place.Column = wrong.Position()
		}
		return nil, &Malformed{place, strings.TrimPrefix(err.Error(), "toml: ")}
	}
	places := tomlPlaces(file, data)
	root := tomlNode(tree, "", Place{file, 1, 1}, places)
	root.read = true
	return root, nil
}

// tomlPlaces finds where every key is written, by its path.
func tomlPlaces(file string, data []byte) map[string]Place {
	places := map[string]Place{}
	tables := map[string]int{} // elements of arrays of tables so far
	var p unstable.Parser
	p.Reset(data)
	prefix := ""
	for p.NextExpression() {
		e := p.Expression()
		path, at := "", Place{}
		if e.Kind == unstable.KeyValue {
			path = prefix
		}
		for key := e.Key(); key.Next(); {
			start := p.Shape(key.Node().Raw).Start
			at = Place{file, start.Line, start.Column}
			path += "\x00" + string(key.Node().Data)
			if n, isArray := tables[path]; isArray && !(e.Kind == unstable.ArrayTable && key.IsLast()) {
				path = fmt.Sprintf("%s\x00%d", path, n-1)
			}
			if _, known := places[path]; !known {
				places[path] = at
			}
		}
		switch e.Kind {
		case unstable.ArrayTable:
			n := tables[path]
			tables[path] = n + 1
			path = fmt.Sprintf("%s\x00%d", path, n)
			places[path] = at
			prefix = path
		case unstable.Table:
			prefix = path
		}
	}
	return places
}

// tomlNode builds the tree; what has no place of its own is where its parent is.
func tomlNode(v any, path string, above Place, places map[string]Place) *node {
	at, ok := places[path]
	if !ok {
		at = above
	}
	n := &node{at: at}
	switch v := v.(type) {
	case map[string]any:
		n.members = map[string]*node{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n.names = append(n.names, name)
			n.members[name] = tomlNode(v[name], path+"\x00"+name, at, places)
		}
		slices.SortStableFunc(n.names, func(a, b string) int { return n.members[a].at.Line - n.members[b].at.Line })
	case []any:
		n.isList = true
		for i, item := range v {
			n.items = append(n.items, tomlNode(item, fmt.Sprintf("%s\x00%d", path, i), at, places))
		}
	case int64:
		n.value = float64(v)
	case string, bool, float64:
		n.value = v
	default:
		n.value = fmt.Sprint(v) // dates and times
	}
	return n
}
