package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/server/door"
)

// decoder compares a parsed file with the types of File and collects what does not fit.
type decoder struct {
	name     string
	source   []byte
	document *hujson.Value
	problems Problems
}

func (d *decoder) check(v *hujson.Value) { d.value(v, reflect.TypeFor[File](), "") }

func (d *decoder) add(offset int, key, text, remedy string) {
	line := 1 + bytes.Count(d.source[:offset], []byte("\n"))
	column := offset - bytes.LastIndexByte(d.source[:offset], '\n')
	d.problems = append(d.problems, Problem{d.name, line, column, key, text, remedy})
}

// value checks one value against the Go type that it is decoded into.
func (d *decoder) value(v *hujson.Value, t reflect.Type, key string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return // any value: whoever takes it checks it
	}
	if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == 'n' && t.Implements(reflect.TypeFor[nullable]()) {
		return
	}
	if forms, ok := reflect.Zero(t).Interface().(severalForms); ok {
		d.anyForm(v, t, key, forms.Forms())
		return
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			d.wrongType(v, key, "an object")
			return
		}
		d.object(object, t, key)
	case reflect.Slice:
		if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == '"' && t == reflect.TypeFor[command.Alternatives]() {
			return // a single word stands for a list of one
		}
		array, ok := v.Value.(*hujson.Array)
		if !ok {
			d.wrongType(v, key, "a list")
			return
		}
		for i := range array.Elements {
			d.value(&array.Elements[i], t.Elem(), fmt.Sprintf("%s[%d]", key, i))
		}
	default:
		d.literal(v, t, key)
	}
}

// severalForms marks types that are written in more than one form; Forms says in which.
type severalForms interface{ Forms() string }

// anyForm checks a value that its type reads itself.
func (d *decoder) anyForm(v *hujson.Value, t reflect.Type, key, forms string) {
	plain := v.Clone()
	plain.Standardize()
	if json.Unmarshal(plain.Pack(), reflect.New(t).Interface()) != nil {
		d.wrongType(v, key, forms)
	}
}

func (d *decoder) object(object *hujson.Object, t reflect.Type, key string) {
	fields := map[string]reflect.Type{}
	if t.Kind() == reflect.Struct {
		collectFields(t, fields)
	}
	seen := map[string]bool{}
	for i := range object.Members {
		member := &object.Members[i]
		name := member.Name.Value.(hujson.Literal).String()
		path := JoinKey(key, name)
		if seen[name] {
			// Of two equal keys one would be ignored in silence, and it could be the one that denies.
			d.add(member.Name.StartOffset, path, "the key stands here twice", "keep one of them")
			continue
		}
		seen[name] = true
		elem := reflect.Type(nil)
		if t.Kind() == reflect.Map {
			elem = t.Elem()
		} else if elem = fields[name]; elem == nil {
			d.add(member.Name.StartOffset, path, "there is no such key", nearest(name, fields))
			continue
		}
		d.value(&member.Value, elem, path)
	}
}

// JoinKey appends a name to a path, quoted where it has to be.
func JoinKey(parent, name string) string {
	switch {
	case !plainName(name):
		return parent + "[" + strconv.Quote(name) + "]"
	case parent == "":
		return name
	default:
		return parent + "." + name
	}
}

// collectFields lists the JSON names of a struct, those of embedded structs included. As in encoding/json, a field of
// the struct itself stands for one of the same name in an embedded struct.
func collectFields(t reflect.Type, fields map[string]reflect.Type) {
	own := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			collectFields(f.Type, fields)
		case name != "" && name != "-":
			own[name] = f.Type
		}
	}
	maps.Copy(fields, own)
}

func (d *decoder) literal(v *hujson.Value, t reflect.Type, key string) {
	literal, ok := v.Value.(hujson.Literal)
	target := reflect.New(t)
	switch {
	case !ok:
		d.wrongType(v, key, typeWord(t))
	case literal.Kind() == 'n':
		d.wrongType(v, key, typeWord(t))
	default:
		if err := json.Unmarshal(literal, target.Interface()); err != nil {
			d.wrongType(v, key, typeWord(t))
		}
	}
}

func (d *decoder) wrongType(v *hujson.Value, key, want string) {
	text := strings.TrimSpace(v.String())
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	d.add(v.StartOffset, key, fmt.Sprintf("expected %s, got %s", want, text), "")
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "a number"
	default:
		return "a whole number"
	}
}

// nearest names the valid key that was probably meant, or all of them.
func nearest(name string, fields map[string]reflect.Type) string {
	best, distance := "", math.MaxInt
	all := make([]string, 0, len(fields))
	for field := range fields {
		all = append(all, field)
		if n := editDistance(strings.ToLower(name), strings.ToLower(field)); n < distance || n == distance && field < best {
			best, distance = field, n
		}
	}
	if distance <= max(2, len(name)/3) {
		return fmt.Sprintf("did you mean %q?", best)
	}
	slices.Sort(all)
	return "valid keys here: " + strings.Join(all, ", ")
}

// editDistance counts the insertions, deletions and replacements between two short words.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}

// keyError is an error about one key.
type keyError struct{ key, text string }

func (e keyError) Error() string     { return e.text }
func (e keyError) ConfigKey() string { return e.key }

// checkValues checks what the types cannot say.
func checkValues(f File) []error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, keyError{key, fmt.Sprintf(format, args...)})
	}
	if l := f.Server.Listen; l != "" {
		if _, port, err := net.SplitHostPort(l); err != nil || port == "" {
			wrong("server.listen", "%q is not an address such as 127.0.0.1:7411", l)
		}
	}
	if _, err := door.ParsePublicOrigin(f.Server.PublicOrigin); err != nil {
		wrong("server.publicOrigin", "%s", err)
	}
	for i, a := range f.Agents.List {
		if a.Workspace != "" && !filepath.IsAbs(a.Workspace) {
			wrong(fmt.Sprintf("agents.list[%d].workspace", i), "%q is not an absolute path", a.Workspace)
		}
	}
	checkDefaultAgent(&f, wrong)
	if m := f.TEG.Mode; m != "" && m != ModeEnforce && m != ModeShadow {
		wrong("teg.mode", "%q: write enforce or shadow", m)
	}
	if s := f.TEG.Shadow; s != "" && (!filepath.IsLocal(s) || filepath.Clean(s) == FileName) {
		// The home is out of reach of agents. A file elsewhere could be written by those whom it is to judge.
		wrong("teg.shadow", "%q: write the name of another file in the home, such as candidate.jsonc", s)
	}
	if s := f.TEG.Audit.Sync; s != "" && s != "auto" && s != "always" {
		wrong("teg.audit.sync", "%q: write auto or always", s)
	}
	if n := f.TEG.Audit.RetainDays; n < 0 || n > 3650 {
		wrong("teg.audit.retainDays", "%d: write a number of days from 1 to 3650", n)
	}
	for _, problem := range f.TEG.Audit.Checkpoints.Check() {
		wrong("teg.audit.checkpoints."+problem.Key, "%s", problem.Text)
	}
	if a := f.Bridge.Attended; a != "" && a != "toolward" && a != "client" {
		wrong("bridge.attended", "%q: write toolward or client", a)
	}
	checkUndo(f.Undo, wrong)
	for _, problem := range f.Telemetry.Check() {
		wrong("telemetry."+problem.Key, "%s", problem.Text)
	}
	if err := f.Gateway.Check(cmp.Or(f.Server.Listen, defaultListen)); err != nil {
		errs = append(errs, err.(interface{ Unwrap() []error }).Unwrap()...)
	}
	errs = append(errs, checkAnomaly(f)...)
	errs = append(errs, checkCommands(f)...)
	for _, l := range Table() {
		if v := l.value(&f.Limits); v != 0 && (v < l.Least || v > l.Most) {
			wrong(l.Key, "%d is out of range: write %d to %d", v, l.Least, l.Most)
		}
	}
	if err := f.Builtin().Check(); err != nil {
		errs = append(errs, toolLimitErrors(err)...)
	}
	return errs
}

// toolLimitErrors splits builtin's joined errors; each begins with the name of the setting.
func toolLimitErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		name, _, _ := strings.Cut(err.Error(), " ")
		switch name = strings.TrimSuffix(name, ":"); name {
		case "shell", "pathPrepend":
			return []error{keyError{"tools.exec." + name, strings.TrimPrefix(err.Error(), name+": ")}}
		}
		return []error{keyError{"limits.tools." + name, err.Error()}}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, toolLimitErrors(e)...)
	}
	return all
}

// addError gives an error its place in the file: that of its key, or of the nearest key above that is there.
func (d *decoder) addError(err error) {
	var keyed Keyed
	if !errors.As(err, &keyed) {
		d.add(0, "", err.Error(), "")
		return
	}
	key := keyed.ConfigKey()
	d.add(d.offset(key), key, strings.TrimPrefix(keyed.Error(), key+": "), "")
}

// offset finds the value of a key such as agents.list[2].tools.allow[1].
func (d *decoder) offset(key string) int {
	if d.document == nil || d.document.Value == nil {
		return 0
	}
	at := d.document
	for _, part := range SplitKey(key) {
		next := member(at, part)
		if next == nil {
			break
		}
		at = next
	}
	return at.StartOffset
}

func member(v *hujson.Value, part string) *hujson.Value {
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			if c.Members[i].Name.Value.(hujson.Literal).String() == part {
				return &c.Members[i].Value
			}
		}
	case *hujson.Array:
		if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(c.Elements) {
			return &c.Elements[i]
		}
	}
	return nil
}

// SplitKey takes a path apart: names, [number] and ["name"].
func SplitKey(key string) []string {
	var parts []string
	for key != "" {
		key = strings.TrimPrefix(key, ".")
		if rest, ok := strings.CutPrefix(key, "["); ok {
			if quoted, err := strconv.QuotedPrefix(rest); err == nil {
				name, _ := strconv.Unquote(quoted)
				parts = append(parts, name)
				key = strings.TrimPrefix(rest[len(quoted):], "]")
				continue
			}
			index, after, _ := strings.Cut(rest, "]")
			parts, key = append(parts, index), after
			continue
		}
		end := strings.IndexAny(key, ".[")
		if end < 0 {
			end = len(key)
		}
		parts, key = append(parts, key[:end]), key[end:]
	}
	return parts
}
