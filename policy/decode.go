package policy

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/schema"
)

// paramsOf says which parameters of Toolward's own tools have other spellings or name things.
func paramsOf(t *toolward.Tool) schema.Params {
	if t.Plugin != "" {
		return schema.Params{}
	}
	if p, ok := schema.FileParams(t.Name); ok {
		return p
	}
	return schema.Params{Kinds: map[string]schema.Kind{
		"path": schema.Path, "paths": schema.Path, "workdir": schema.Path, "cwd": schema.Path, "image": schema.Path,
		"images": schema.Path, "command": schema.Command, "url": schema.URL, "to": schema.Recipient,
		"target": schema.Recipient, "targets": schema.Recipient, "channel": schema.Recipient,
	}}
}

// compileSchema keeps what the arguments of a registered tool must look like.
func (s *Snapshot) compileSchema(t *toolward.Tool) error {
	compiled, err := schema.Compile(t.Schema, schema.Options{Params: paramsOf(t), Foreign: t.Plugin != ""})
	if err != nil {
		return err
	}
	s.schemas[t] = compiled
	return nil
}

// Decode decodes and validates the arguments of a registered tool, or of a form by its own schema.
func (s *Snapshot) Decode(t *toolward.Tool, raw json.RawMessage) (toolward.Params, error) {
	compiled := s.schemas[t]
	if compiled == nil {
		var err error
		if compiled, err = schema.Compile(t.Schema, schema.Options{Params: paramsOf(t), Foreign: t.Plugin != ""}); err != nil {
			return toolward.Params{}, fmt.Errorf("decode arguments of %s: %w", t.Name, err)
		}
	}
	v, err := compiled.Decode(raw)
	if err != nil {
		if e, ok := errors.AsType[*schema.Error](err); ok {
			return toolward.Params{}, invalidArgs(e)
		}
		return toolward.Params{}, err
	}
	return toolward.NewParams(v.Canonical, v.Object), nil
}

// invalidArgs words a refusal for the model; the name of a parameter may be the caller's own invention.
func invalidArgs(e *schema.Error) *toolward.InvalidArgs {
	text := e.Problem
	if e.Want != "" {
		text += " (expected " + e.Want + ")"
	}
	return &toolward.InvalidArgs{Field: printable(e.Field), Text: text}
}
