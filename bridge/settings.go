package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// settings is a client's settings file while it is edited. Everything in it that is not Toolward's keeps its bytes:
// order, spacing, unknown keys, other hooks.
type settings struct {
	root   hujson.Value
	indent string // one step of indentation, "" if the file is written without line breaks
}

// handler is one command hook in the client's settings.
type handler struct {
	Type      string   `json:"type"`
	Command   string   `json:"command"`
	Args      []string `json:"args"`
	Timeout   int      `json:"timeout"`
	OnFailure string   `json:"onFailure,omitempty"`
}

// group is a matcher with its handlers.
type group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

// parseSettings reads a file; an empty one is an empty object. A file that the client could not read is an error:
// what it means cannot be known, so it must not be touched.
func parseSettings(data []byte) (*settings, error) {
	indent := "  "
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return nil, err
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	if len(object.Members) > 0 {
		before := string(object.Members[0].Name.BeforeExtra)
		if i := strings.LastIndexByte(before, '\n'); i >= 0 {
			indent = before[i+1:]
		} else {
			indent = ""
		}
	}
	return &settings{root: root, indent: indent}, nil
}

// checkJSON refuses what is not plain JSON, and names that stand twice in one object: readers differ about which of
// the two counts.
func checkJSON(data []byte) error {
	var any any
	if err := json.Unmarshal(data, &any); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n"))
			return fmt.Errorf("line %d: %w", line, err)
		}
		return err
	}
	root, err := hujson.Parse(data)
	if err != nil {
		return err
	}
	for v := range root.All() {
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, m := range object.Members {
			name := m.Name.Value.(hujson.Literal).String()
			if seen[name] {
				return fmt.Errorf("the name %q stands twice in one object", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// bytes is the file as it is now.
func (s *settings) bytes() []byte { return s.root.Pack() }

// object is the file's root object.
func (s *settings) object() *hujson.Object { return s.root.Value.(*hujson.Object) }

// find returns the position of a member, -1 if there is none.
func find(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == name })
}

// flag reads a boolean at the top; have is false if it is absent or not a boolean.
func (s *settings) flag(name string) (value, have bool) {
	i := find(s.object(), name)
	if i < 0 {
		return false, false
	}
	literal, ok := s.object().Members[i].Value.Value.(hujson.Literal)
	return ok && literal.Bool(), ok && (literal.Kind() == 't' || literal.Kind() == 'f')
}

// setFlag adds a boolean at the top.
func (s *settings) setFlag(name string, value bool) { s.add(s.object(), 0, name, value) }

// remove takes a member out of the top.
func (s *settings) remove(name string) { removeMember(s.object(), find(s.object(), name)) }

// install puts one handler for each event and takes out all older ones of Toolward. Other hooks stay.
func (s *settings) install(events []string, group func(event string) group) error {
	hooks, err := s.hooks(true)
	if err != nil {
		return err
	}
	for _, event := range events {
		want := group(event)
		i := find(hooks, event)
		if i < 0 {
			s.add(hooks, 1, event, []any{want})
			continue
		}
		list, ok := hooks.Members[i].Value.Value.(*hujson.Array)
		if !ok {
			return fmt.Errorf("hooks.%s is not a list", event)
		}
		if ours, exact := countOurs(list, want); ours == 1 && exact {
			continue
		}
		removeOurs(list)
		s.append(list, 2, want)
	}
	return s.uninstallEvents(hooks, func(event string) bool { return slices.Contains(events, event) })
}

// uninstall takes all handlers of Toolward out, and what becomes empty by that.
func (s *settings) uninstall() error {
	hooks, err := s.hooks(false)
	if hooks == nil || err != nil {
		return err
	}
	if err := s.uninstallEvents(hooks, func(string) bool { return false }); err != nil {
		return err
	}
	if len(hooks.Members) == 0 {
		s.remove("hooks")
	}
	return nil
}

// uninstallEvents takes Toolward's handlers out of all events but those to keep.
func (s *settings) uninstallEvents(hooks *hujson.Object, keep func(event string) bool) error {
	for i := len(hooks.Members) - 1; i >= 0; i-- {
		event := hooks.Members[i].Name.Value.(hujson.Literal).String()
		list, ok := hooks.Members[i].Value.Value.(*hujson.Array)
		if !ok {
			return fmt.Errorf("hooks.%s is not a list", event)
		}
		if keep(event) {
			continue
		}
		if removeOurs(list) && len(list.Elements) == 0 {
			removeMember(hooks, i)
		}
	}
	return nil
}

// hooks is the object of hooks; nil if there is none and none is to be made.
func (s *settings) hooks(make bool) (*hujson.Object, error) {
	i := find(s.object(), "hooks")
	if i < 0 {
		if !make {
			return nil, nil
		}
		s.add(s.object(), 0, "hooks", map[string]any{})
		i = find(s.object(), "hooks")
	}
	hooks, ok := s.object().Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New(`"hooks" is not an object`)
	}
	return hooks, nil
}

// isOurs reports whether a handler starts Toolward's hook, wherever the program is.
func isOurs(v *hujson.Value) bool {
	var h handler
	if json.Unmarshal(v.Pack(), &h) != nil || h.Type != "command" {
		return false
	}
	switch program := filepath.Base(h.Command); {
	case program == "toolward-hook":
		return len(h.Args) > 0
	case program == "toolward":
		return len(h.Args) > 0 && h.Args[0] == "hook"
	}
	return false
}

// eachGroup calls do with the handlers of each group of an event.
func eachGroup(list *hujson.Array, do func(i int, handlers *hujson.Array)) {
	for i := len(list.Elements) - 1; i >= 0; i-- {
		object, ok := list.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		at := find(object, "hooks")
		if at < 0 {
			continue
		}
		if handlers, ok := object.Members[at].Value.Value.(*hujson.Array); ok {
			do(i, handlers)
		}
	}
}

// countOurs counts Toolward's handlers; exact says that the last one is alone in a group that is exactly as wanted.
func countOurs(list *hujson.Array, want group) (ours int, exact bool) {
	eachGroup(list, func(i int, handlers *hujson.Array) {
		for j := range handlers.Elements {
			if !isOurs(&handlers.Elements[j]) {
				continue
			}
			ours++
			var have group
			decoder := json.NewDecoder(bytes.NewReader(list.Elements[i].Pack()))
			decoder.DisallowUnknownFields()
			exact = decoder.Decode(&have) == nil && reflect.DeepEqual(have, want)
		}
	})
	return ours, exact
}

// removeOurs takes Toolward's handlers out, and groups that become empty by that.
func removeOurs(list *hujson.Array) (removed bool) {
	eachGroup(list, func(i int, handlers *hujson.Array) {
		before := len(handlers.Elements)
		for j := before - 1; j >= 0; j-- {
			if isOurs(&handlers.Elements[j]) {
				handlers.Elements = slices.Delete(handlers.Elements, j, j+1)
			}
		}
		if len(handlers.Elements) < before {
			removed = true
			if len(handlers.Elements) == 0 {
				list.Elements = slices.Delete(list.Elements, i, i+1)
			}
		}
	})
	return removed
}

func removeMember(o *hujson.Object, i int) {
	if i >= 0 {
		o.Members = slices.Delete(o.Members, i, i+1)
	}
}

// add puts a member at the end of an object that is depth steps deep.
func (s *settings) add(o *hujson.Object, depth int, name string, value any) {
	member := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: s.value(value, depth+1)}
	if s.indent != "" {
		member.Name.BeforeExtra = s.space(depth + 1)
		member.Value.BeforeExtra = hujson.Extra(" ")
		if len(o.Members) == 0 {
			o.AfterExtra = s.space(depth)
		}
	}
	o.Members = append(o.Members, member)
}

// append puts an element at the end of a list that is depth steps deep.
func (s *settings) append(list *hujson.Array, depth int, value any) {
	element := s.value(value, depth+1)
	if s.indent != "" {
		element.BeforeExtra = s.space(depth + 1)
		if len(list.Elements) == 0 || len(list.AfterExtra) == 0 {
			list.AfterExtra = s.space(depth)
		}
	}
	list.Elements = append(list.Elements, element)
}

// space is a line break and the indentation of a depth.
func (s *settings) space(depth int) hujson.Extra {
	return hujson.Extra("\n" + strings.Repeat(s.indent, depth))
}

// value writes a value as the file is written, depth steps deep.
func (s *settings) value(v any, depth int) hujson.Value {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if s.indent != "" {
		encoder.SetIndent(strings.Repeat(s.indent, depth), s.indent)
	}
	// Only values of this file's own types come here: they can be encoded, and parsed again.
	_ = encoder.Encode(v)
	parsed, _ := hujson.Parse(bytes.TrimSpace(raw.Bytes()))
	return parsed
}

// sameButOurs reports whether two files say the same but for Toolward's hooks and the named top-level keys. It is
// the last check before anything is written.
func sameButOurs(before, after []byte, keys ...string) bool {
	a, err := withoutOurs(before, keys)
	b, err2 := withoutOurs(after, keys)
	return err == nil && err2 == nil && reflect.DeepEqual(a, b)
}

func withoutOurs(data []byte, keys []string) (rest map[string]any, err error) {
	s, err := parseSettings(data)
	if err != nil {
		return nil, err
	}
	if err := s.uninstall(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(s.bytes(), &rest); err != nil {
		return nil, err
	}
	for _, key := range keys {
		delete(rest, key)
	}
	if hooks, ok := rest["hooks"].(map[string]any); ok && len(hooks) == 0 {
		delete(rest, "hooks")
	}
	return rest, nil
}
