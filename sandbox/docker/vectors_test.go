package docker

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/settings"
)

// creationCase is what a vector says a container is created from.
type creationCase struct {
	Name, ScopeKey string
	CreatedAtMs    int64
	ConfigHash     string
	Labels         map[string]string
	Docker         settings.DockerConfig
	Mounts         struct{ WorkspaceDir, AgentWorkspaceDir, WorkspaceAccess string }
	EngineDefaults *bool
	Strict         bool
	EnvAllow       []string
}

// The arguments are rendered from the very request that the engine would send.
func TestCreateArgsVectors(t *testing.T) {
	gatetest.Run(t, "sandbox.json", "create_args", func(t *testing.T, input json.RawMessage) any {
		var in creationCase
		gatetest.Decode(t, input, &in)
		spec := in.spec(t)
		user := ""
		if in.Docker.User != "" {
			user = strconv.Itoa(spec.User.UID) + ":" + strconv.Itoa(spec.User.GID)
		} else if spec.User.UID == 0 { // a vector leaves the user to the image, which may be root; the engine always names one
			t.Errorf("the user is %+v", spec.User)
		}
		m := &mounts{program: &inside.Program{}}
		if err := m.addSources(spec); err != nil {
			t.Fatal(err)
		}
		asked, err := request(spec, m, user, namedProfiles(spec.Docker.SeccompProfile, spec.Docker.AppArmor), "")
		if err != nil {
			t.Fatal(err)
		}
		delete(asked.Config.Labels, labelInstance)
		asked.Config.Labels[labelCreated] = strconv.FormatInt(in.CreatedAtMs, 10)
		if !in.defaults() {
			in.swapAsWritten(t, &asked.HostConfig.Resources)
		}
		args, err := createArgs(&asked)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"args": in.tmpfsAsWritten(t, args, spec.Limits.Memory)}
	})
}

func (in *creationCase) defaults() bool { return in.EngineDefaults == nil || *in.EngineDefaults }

// spec is what the settings make of the configuration, of the names and directories of the vector.
func (in *creationCase) spec(t *testing.T) *sandbox.Spec {
	t.Helper()
	config := settings.Config{Docker: in.Docker, EnvAllow: in.EnvAllow, EnvStrict: &in.Strict}
	config.Docker.Binds = nil // what may be mounted is not what these vectors are about
	compiled, _ := settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: config}}, settings.Surroundings{StateDir: t.TempDir()})
	plan, err := compiled.For("c").Preview(t.Context(), settings.Request{Agent: "c", Session: "agent:c:x"})
	if err != nil {
		t.Fatal(err)
	}
	spec := plan.Spec
	// Nor what programs are told of their home.
	spec.Env = slices.DeleteFunc(spec.Env, func(v string) bool { return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "GOTMPDIR=") })
	spec.Name, spec.ScopeKey, spec.Hash, spec.Docker.Labels = in.Name, in.ScopeKey, in.ConfigHash, in.Labels
	access, err := settings.ParseAccess(cmp.Or(in.Mounts.WorkspaceAccess, "none"))
	if err != nil {
		t.Fatal(err)
	}
	var binds []settings.Bind
	for _, text := range in.Docker.Binds {
		b, err := settings.ParseBind(text)
		if err != nil {
			t.Fatal(err)
		}
		binds = append(binds, b)
	}
	spec.Mounts = settings.Mounts(access, spec.Workdir, in.Mounts.WorkspaceDir, in.Mounts.AgentWorkspaceDir, binds)
	if !in.defaults() {
		in.withoutDefaults(spec)
	}
	return spec
}

// withoutDefaults takes out the limits that nobody has written.
func (in *creationCase) withoutDefaults(spec *sandbox.Spec) {
	if in.Docker.Memory.Text() == "" {
		spec.Limits.Memory = 0
	}
	if in.Docker.PidsLimit == nil {
		spec.Limits.Pids = 0
	}
	spec.Docker.Ulimits = slices.DeleteFunc(spec.Docker.Ulimits, func(u sandbox.Ulimit) bool {
		_, written := in.Docker.Ulimits[u.Name]
		return !written
	})
}

// swapAsWritten puts in the swap of the vector. The engine sends another one in one case only, and then as much as the memory,
// which is no swap at all: where a vector writes less than the memory, or none, of which a container engine would make as much again.
func (in *creationCase) swapAsWritten(t *testing.T, asked *container.Resources) {
	t.Helper()
	written, err := in.Docker.MemorySwap.Count()
	if err != nil {
		t.Fatal(err)
	}
	if written != asked.MemorySwap && (written > asked.Memory || asked.MemorySwap != asked.Memory) {
		t.Errorf("with a memory of %d and %d written, the swap asked for is %d", asked.Memory, written, asked.MemorySwap)
	}
	asked.MemorySwap = written
}

// tmpfsAsWritten puts the file systems in memory in the order of the vector, and leaves out the options that the engine adds to
// each: a request has them by their targets.
func (in *creationCase) tmpfsAsWritten(t *testing.T, args []string, memory int64) []string {
	t.Helper()
	size := int64(1 << 30) // without a limit of memory
	if memory > 0 {
		size = memory / 8
	}
	asked := map[string]bool{}
	var rest []string
	at := -1
	for i := 0; i < len(args); i++ {
		if args[i] != "--tmpfs" {
			rest = append(rest, args[i])
			continue
		}
		if at < 0 {
			at = len(rest)
		}
		i++
		target, options, _ := strings.Cut(args[i], ":")
		if options != "rw,noexec,nosuid,nodev,mode=1777,size="+strconv.FormatInt(size, 10) {
			t.Errorf("%s has the options %s", target, options)
		}
		asked[target] = true
	}
	var list []string
	for _, written := range in.Docker.Tmpfs {
		if !asked[written] {
			t.Errorf("%s is not asked for", written)
		}
		list = append(list, "--tmpfs", written)
	}
	if len(asked) != len(in.Docker.Tmpfs) {
		t.Errorf("asked for are %v", asked)
	}
	if at < 0 {
		return rest
	}
	return slices.Insert(rest, at, list...)
}
