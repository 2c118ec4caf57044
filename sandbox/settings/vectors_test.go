package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/toolward/toolward/internal/gatetest"
)

const vectorFile = "sandbox.json"

// refusal is the answer of an operation that is refused.
func refusal(err error) any { return map[string]any{"error": sandbox.CodeOf(err)} }

func TestNamesVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "slug", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Value string }
		gatetest.Decode(t, input, &in)
		return map[string]any{"slug": sandbox.Slug(in.Value)}
	})
	gatetest.Run(t, vectorFile, "container_name", func(t *testing.T, input json.RawMessage) any {
		var in struct{ ContainerPrefix, Scope, ScopeKey string }
		gatetest.Decode(t, input, &in)
		name, err := ContainerName(cmp.Or(in.ContainerPrefix, DefaultPrefix), Scope(in.Scope), in.ScopeKey)
		if err != nil {
			return refusal(err)
		}
		return map[string]any{"name": name}
	})
	gatetest.Run(t, vectorFile, "scope_key", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Scope, SessionKey string }
		gatetest.Decode(t, input, &in)
		return map[string]any{"scopeKey": ScopeKey(Scope(in.Scope), in.SessionKey)}
	})
}

func TestWordsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "mode", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Mode string }
		gatetest.Decode(t, input, &in)
		mode, err := ParseMode(in.Mode)
		if err != nil {
			return refusal(err)
		}
		return map[string]any{"canonical": mode}
	})
	gatetest.Run(t, vectorFile, "access_alias", func(t *testing.T, input json.RawMessage) any {
		var in struct{ WorkspaceAccess string }
		gatetest.Decode(t, input, &in)
		access, err := ParseAccess(in.WorkspaceAccess)
		if err != nil {
			return refusal(err)
		}
		return map[string]any{"canonical": access}
	})
	gatetest.Run(t, vectorFile, "is_sandboxed", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Mode, AgentID, SessionKey string
			Session                   struct{ MainKey, Scope string }
		}
		gatetest.Decode(t, input, &in)
		sessions := Sessions{MainKey: in.Session.MainKey, Global: in.Session.Scope == "global"}
		mode, err := ParseMode(in.Mode)
		if err != nil {
			return refusal(err)
		}
		yes, _ := sessions.Sandboxed(mode, in.AgentID, in.SessionKey)
		return map[string]any{"sandboxed": yes}
	})
}

// links is a file system of symbolic links; everything else is a plain file.
type links map[string]string

func (l links) ReadLink(p string) (string, bool, error) {
	target, link := l[p]
	return target, link, nil
}

func TestBindsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "bind_validate", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Binds                                    []string
			Home                                     string
			AllowedRoots                             []string
			DangerouslyAllowReservedContainerTargets bool
			DangerouslyAllowExternalBindSources      bool
			Symlinks                                 links
		}
		gatetest.Decode(t, input, &in)
		state := path.Join(in.Home, ".toolward")
		rules := BindRules{
			Home: in.Home, StateDir: state, WorkspaceRoot: path.Join(state, "sandboxes"), Roots: in.AllowedRoots,
			AllowReserved: in.DangerouslyAllowReservedContainerTargets, AllowExternal: in.DangerouslyAllowExternalBindSources,
			Files: in.Symlinks,
		}
		if _, err := rules.Validate(in.Binds); err != nil {
			return refusal(err)
		}
		return map[string]any{"ok": true}
	})
	gatetest.Run(t, vectorFile, "bind_parse", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Spec string }
		gatetest.Decode(t, input, &in)
		b, err := ParseBind(in.Spec)
		if err != nil {
			return refusal(err)
		}
		return map[string]any{"host": b.Source, "container": b.Target, "writable": b.Writable}
	})
}

func TestNetworkVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "network", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Network                                string
			DangerouslyAllowContainerNamespaceJoin bool
		}
		gatetest.Decode(t, input, &in)
		network, err := ParseNetwork(in.Network, in.DangerouslyAllowContainerNamespaceJoin)
		if err != nil {
			return refusal(err)
		}
		return map[string]any{"network": network}
	})
	gatetest.Run(t, vectorFile, "profile", func(t *testing.T, input json.RawMessage) any {
		var in struct{ Key, Value string }
		gatetest.Decode(t, input, &in)
		if err := CheckProfile(in.Key, in.Value); err != nil {
			return refusal(err)
		}
		return map[string]any{"ok": true}
	})
}

func TestEnvVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "env", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Env      json.RawMessage
			Strict   bool
			EnvAllow []string
		}
		gatetest.Decode(t, input, &in)
		given, written := orderedEnv(t, in.Env)
		out := EnvRules{Allow: in.EnvAllow, Strict: in.Strict}.Filter(given)
		allowed := map[string]any{}
		for _, v := range out.Allowed {
			allowed[v.Name] = v.Value
			if as, long := written[v.Value]; long {
				allowed[v.Name] = as
			}
		}
		return map[string]any{"allowed": allowed, "blocked": append([]string{}, out.Blocked...), "warnings": append([]EnvWarning{}, out.Warnings...)}
	})
}

// orderedEnv reads an environment in its order. Long values are written {"$repeat", "$times"}: written tells how.
func orderedEnv(t *testing.T, raw json.RawMessage) (env []Variable, written map[string]json.RawMessage) {
	t.Helper()
	if len(raw) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	written = map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			var long struct {
				Repeat string `json:"$repeat"`
				Times  int    `json:"$times"`
			}
			gatetest.Decode(t, value, &long)
			text = strings.Repeat(long.Repeat, long.Times)
			written[text] = value
		}
		env = append(env, Variable{name.(string), text})
	}
	return env, written
}

func TestPathsVectors(t *testing.T) {
	gatetest.Run(t, vectorFile, "path_map", func(t *testing.T, input json.RawMessage) any {
		var in struct {
			Sandbox struct {
				WorkspaceDir, AgentWorkspaceDir, Workdir string
				WorkspaceAccess                          Access
				Binds                                    []string
			}
			Path, Op, Cwd string
		}
		gatetest.Decode(t, input, &in)
		s := in.Sandbox
		s.Workdir, s.WorkspaceAccess = cmp.Or(s.Workdir, WorkspaceTarget), access(t, s.WorkspaceAccess)
		var binds []Bind
		for _, spec := range s.Binds {
			b, err := ParseBind(spec)
			if err != nil {
				t.Fatal(err)
			}
			binds = append(binds, b)
		}
		table := NewMountTable(s.Workdir, Mounts(s.WorkspaceAccess, s.Workdir, s.WorkspaceDir, s.AgentWorkspaceDir, binds))
		location, err := table.Map(in.Path, in.Cwd, in.Op == "write", nil)
		if err != nil {
			return refusal(err)
		}
		return location
	})
}

// access is a kind of access by any of its words; "" is the default.
func access(t *testing.T, word Access) Access {
	t.Helper()
	a, err := ParseAccess(cmp.Or(string(word), string(AccessNone)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var vectorSurroundings = Surroundings{StateDir: "/home/gw/.toolward", Home: "/home/gw", Files: links{}}

// A case of "config" wants only some of what is resolved.
func TestConfigVectors(t *testing.T) {
	gatetest.Play(t, vectorFile, "config", gatetest.Vectors(t, vectorFile, "config")["config"], func(t *testing.T, c gatetest.Case) {
		var in struct{ Global, Agent *Config }
		gatetest.Decode(t, c.Input, &in)
		var configuration Configuration
		if in.Global != nil {
			configuration.Defaults.Config = *in.Global
		}
		if in.Agent != nil {
			configuration.Agents = []AgentConfig{{"coder", *in.Agent}}
		}
		settings, _ := Compile(configuration, vectorSurroundings)
		resolved := settings.For("coder")
		got := asTree(t, resolved).(map[string]any)
		got["browserContainerBinds"] = asTree(t, resolved.BrowserBinds())
		for leaf, source := range resolved.Sources {
			got["sources"].(map[string]any)[leaf] = source.Level
		}
		var want struct{ Subset map[string]any }
		gatetest.Decode(t, c.Want, &want)
		if diff := subsetDiff("", want.Subset, got); diff != "" {
			t.Errorf("input %s\n%s", c.Input, diff)
		}
	})
}

func asTree(t *testing.T, v any) (tree any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// subsetDiff says where a value is not what a subset wants. Maps of variables and limits are wanted whole.
func subsetDiff(at string, want map[string]any, got any) string {
	tree, _ := got.(map[string]any)
	whole := slices.Contains([]string{"docker.env", "docker.ulimits"}, at)
	if whole && len(want)+len(tree) > 0 && !reflect.DeepEqual(want, tree) {
		return fmt.Sprintf("%s: %s", at, gocmp.Diff(want, tree))
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		below := strings.TrimPrefix(at+"."+key, ".")
		if inner, ok := want[key].(map[string]any); ok {
			if diff := subsetDiff(below, inner, tree[key]); diff != "" {
				return diff
			}
			continue
		}
		if !reflect.DeepEqual(want[key], tree[key]) {
			return fmt.Sprintf("%s: want %v, got %v", below, want[key], tree[key])
		}
	}
	return ""
}
