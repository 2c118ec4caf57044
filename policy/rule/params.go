package rule

import (
	"encoding/json"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// params is the variable params: the canonical parameters as a map. A single parameter is looked up alone, so that a
// condition on the path of a file does not copy what is written into it.
type params struct {
	call  *Call
	found []param // parameters that conditions asked for
	whole traits.Mapper
}

type param struct {
	name  string
	value ref.Val
}

var _ traits.Mapper = (*params)(nil)

// Find returns one parameter.
func (p *params) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	for i := range p.found {
		if p.found[i].name == string(name) {
			return p.found[i].value, true
		}
	}
	if !p.call.request.Params.Has(string(name)) {
		return nil, false
	}
	value := types.DefaultTypeAdapter.NativeToValue(plain(p.call.request.Params.Value(string(name))))
	p.found = append(p.found, param{string(name), value})
	return value, true
}

// all is every parameter, for conditions that look at the map as such.
func (p *params) all() traits.Mapper {
	if p.whole == nil {
		object, _ := plain(p.call.request.Params.Object()).(map[string]any)
		p.whole = types.NewStringInterfaceMap(types.DefaultTypeAdapter, object)
	}
	return p.whole
}

func (p *params) Get(key ref.Val) ref.Val {
	if value, ok := p.Find(key); ok {
		return value
	}
	return p.all().Get(key) // in words what is missing
}

func (p *params) Contains(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		return types.Bool(p.call.request.Params.Has(string(name)))
	}
	return p.all().Contains(key)
}

func (p *params) ConvertToNative(t reflect.Type) (any, error) { return p.all().ConvertToNative(t) }
func (p *params) ConvertToType(t ref.Type) ref.Val            { return p.all().ConvertToType(t) }
func (p *params) Equal(other ref.Val) ref.Val                 { return p.all().Equal(other) }
func (p *params) Iterator() traits.Iterator                   { return p.all().Iterator() }
func (p *params) Size() ref.Val                               { return p.all().Size() }
func (p *params) Type() ref.Type                              { return types.MapType }
func (p *params) Value() any                                  { return p.all().Value() }

// plain turns the numbers of a copy of parameters into those of the language: whole ones into int, those beyond it
// into uint, all others into double. A number keeps its value or becomes the nearest double.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return u
		}
		f, _ := strconv.ParseFloat(string(v), 64) // out of range: an infinity, which compares as such
		return f
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}
