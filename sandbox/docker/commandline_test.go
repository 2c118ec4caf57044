package docker

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/fleet"
)

// inspected is what the container engine has written down of a container.
func inspected(t *testing.T, name string) *container.InspectResponse {
	t.Helper()
	var list []container.InspectResponse
	if err := json.Unmarshal([]byte(docker(t, "inspect", name)), &list); err != nil || len(list) != 1 {
		t.Fatalf("inspect %s: %d, %v", name, len(list), err)
	}
	return &list[0]
}

// home is a Toolward home with a workspace, and a manager of it.
type home struct {
	state, workspace string
	settings         *settings.Settings
	manager          *fleet.Manager
}

func newHome(t *testing.T, e *Engine, configure func(c *settings.Config, base string)) *home {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{state: filepath.Join(base, "state"), workspace: filepath.Join(base, "project")}
	for _, dir := range []string{h.state, filepath.Join(h.workspace, "deep/.git/hooks"), filepath.Join(base, "cache")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := settings.Config{Mode: "all", Scope: "session", Engine: "docker"}
	c.Docker.Image = imageName()
	configure(&c, base)
	var problems []settings.Problem
	around := settings.Surroundings{StateDir: h.state, Home: filepath.Join(base, "home"), Instance: e.options.Instance}
	if h.settings, problems = settings.Compile(settings.Configuration{Defaults: settings.Defaults{Config: c}}, around); len(problems) > 0 {
		t.Fatal(problems)
	}
	h.manager = fleet.NewManager(fleet.ManagerOptions{Engines: []sandbox.Engine{e}, StateDir: h.state, Settings: h.settings})
	if err := h.manager.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.manager.Close)
	return h
}

// Everything that can be written, the other way round than by default, is what a real container has; and the command line
// that people are shown makes the same one.
func TestContainerIsWhatIsWritten(t *testing.T) {
	e := testEngine(t)
	h := newHome(t, e, func(c *settings.Config, base string) {
		c.WorkspaceAccess = "ro"
		c.Limits.Swap = `"1m"`
		c.Env = map[string]string{"LANG": "C", "SIGN": "it's\ta \u202etest", "MY_TOKEN": "hidden"}
		c.Binds = []string{base + "/cache:/cache", base + "/project/deep:/deep:ro"}
		c.Docker.AllowExternalSources = new(true)
		c.Docker.Workdir, c.Docker.User = "/project/", "12345"
		c.Docker.Tmpfs = []string{"/tmp:exec,size=2m", "/scratch"}
		c.Docker.Memory, c.Docker.PidsLimit, c.Docker.CPUs = `"256m"`, new(int64(99)), new(0.5)
		c.Docker.Ulimits = map[string]settings.UlimitConfig{"nofile": `{"soft": 100, "hard": 200}`, "stack": `"-1"`, "memlock": "65536"}
		c.Docker.DNS, c.Docker.ExtraHosts = []string{" 192.0.2.1 ", ""}, []string{"internal.example:192.0.2.2"}
	})
	q := settings.Request{Agent: "coder", Session: "agent:coder:it's mine", Workspace: h.workspace}
	lease, err := h.manager.Acquire(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	name := lease.Layout.Name
	t.Cleanup(func() { remove(t, e, name) })
	if out, _ := output(t, lease, shell("id -u; id -g; pwd; echo $SIGN; cp /bin/busybox /tmp && /tmp/busybox true && echo runs; grep -c internal.example /etc/hosts")); out !=
		"12345\n12345\n/project\nit's a \u202etest\nruns\n1\n" {
		t.Errorf("inside it is %q", out)
	}
	made := inspected(t, name)
	asWritten(t, made, h)
	lease.Release()
	mustPasteTheSame(t, h, q, made)
}

// What nobody has written is the default, in the container and on the command line, and protected paths are read-only in
// both. Who runs inside is who owns the workspace: never root, unless the workspace itself is root's and shown.
func TestContainerByDefault(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: only root can give workspaces away")
	}
	e := testEngine(t)
	for access, want := range map[string]string{"none": "10001:10001", "ro": "10001:10001", "rw": "0:0"} {
		t.Run(access, func(t *testing.T) {
			h := newHome(t, e, func(c *settings.Config, _ string) { c.WorkspaceAccess = access })
			q := settings.Request{Agent: "coder", Session: "agent:coder:" + access, Workspace: h.workspace}
			lease, err := h.manager.Acquire(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			name := lease.Layout.Name
			t.Cleanup(func() { remove(t, e, name) })
			made := inspected(t, name)
			host := made.HostConfig
			workdir := map[bool]string{false: "/workspace", true: h.workspace}[access == "rw"]
			tmpfs := "rw,noexec,nosuid,nodev,mode=1777,size=536870912"
			programs := strings.Replace(tmpfs, "noexec", "exec", 1)
			got := []any{made.Config.User, host.ReadonlyRootfs, host.NetworkMode, host.CapDrop, *host.PidsLimit, host.Memory, host.MemorySwap, host.NanoCPUs, host.Tmpfs, made.Config.WorkingDir, len(host.Ulimits)}
			wanted := []any{want, true, container.NetworkMode("none"), []string{"ALL"}, int64(512), int64(4 << 30), int64(4 << 30), int64(0), map[string]string{"/tmp": programs, "/var/tmp": programs, "/run": tmpfs}, workdir, 1}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("by default (- want, + got):\n%s", diff)
			}
			if out, _ := output(t, lease, shell("touch mine; chmod u+s mine; stat -c %u:%g:%a mine")); access != "ro" && out != want+":644\nchmod: mine: Operation not permitted\n" {
				t.Errorf("a file of the workspace can be made %q", out)
			}
			protected := slices.ContainsFunc(made.Mounts, func(m container.MountPoint) bool {
				return m.Destination == h.workspace+"/deep/.git/hooks" && m.Source == h.workspace+"/deep/.git/hooks" && !m.RW
			})
			if protected != (access == "rw") {
				t.Errorf("mounted is %+v", made.Mounts)
			}
			lease.Release()
			mustPasteTheSame(t, h, q, made)
		})
	}
}

// mustPasteTheSame removes the container of a request and fails if the command line that people are shown, pasted, makes
// another one.
func mustPasteTheSame(t *testing.T, h *home, q settings.Request, made *container.InspectResponse) {
	t.Helper()
	plan, err := h.settings.For("coder").Preview(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.manager.Remove(t.Context(), strings.TrimPrefix(made.Name, "/"), "test"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(confining(t, made), confining(t, paste(t, h, plan.Spec))); diff != "" {
		t.Errorf("the pasted command line makes something else (- made, + pasted):\n%s", diff)
	}
}

// paste runs the command line that people are shown, as they would, and returns the container that it makes.
func paste(t *testing.T, h *home, spec *sandbox.Spec) *container.InspectResponse {
	t.Helper()
	args, err := CommandLine(t.Context(), spec, filepath.Join(h.state, "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	line := ShellLine(append([]string{live.Need(t, live.Program("docker"))}, args...))
	if strings.ContainsFunc(line, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		t.Errorf("the line steers terminals: %q", line)
	}
	if out, err := exec.Command(live.Need(t, live.Program("bash")), "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v: %s", line, err, out)
	}
	t.Cleanup(func() { docker(t, "rm", "--force", spec.Name) })
	pasted := inspected(t, spec.Name)
	docker(t, "start", spec.Name)
	if out := docker(t, "exec", spec.Name, "sh", "-c", "id -u; grep -E 'Seccomp:|NoNewPrivs|CapBnd' /proc/self/status"); out !=
		strconv.Itoa(spec.User.UID)+"\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2" {
		t.Errorf("in the pasted container it is %q", out)
	}
	return pasted
}

// asWritten compares a container with the configuration of TestContainerIsWhatIsWritten.
func asWritten(t *testing.T, c *container.InspectResponse, h *home) {
	t.Helper()
	base := filepath.Dir(h.state)
	private := filepath.Join(h.state, "sandboxes", sandbox.Slug("agent:coder:it's mine"))
	host := c.HostConfig
	mounts := map[string]string{}
	for _, m := range c.Mounts {
		mode := " ro"
		if m.RW {
			mode = " rw"
		}
		mounts[m.Destination] = m.Source + mode + " " + string(m.Propagation)
	}
	delete(mounts, agentTarget)
	delete(mounts, doorTarget)
	for _, system := range []string{"/etc/passwd", "/etc/group", "/etc/localtime", "/etc/gitconfig"} {
		if !strings.HasSuffix(mounts[system], " ro rprivate") {
			t.Errorf("%s is %s", system, mounts[system])
		}
		delete(mounts, system)
	}
	own := h.state + "/sandboxes/homes/" + sandbox.Slug("agent:coder:it's mine") + "/" + sandbox.Slug(private)
	ulimits := map[string][2]int64{}
	for _, u := range host.Ulimits {
		ulimits[u.Name] = [2]int64{u.Soft, u.Hard}
	}
	labels := map[string]string{}
	for key, value := range c.Config.Labels {
		if strings.HasPrefix(key, sandbox.Brand) && key != labelCreated && key != labelHash && key != labelImage {
			labels[key] = value
		}
	}
	for _, row := range []struct {
		what      string
		got, want any
	}{
		{"labels", labels, map[string]string{labelSandbox: "1", labelScope: "agent:coder:it's mine", labelInstance: t.Name()}},
		{"hash", len(c.Config.Labels[labelHash]), 64},
		{"time", c.Config.Labels[labelCreated] != "", true},
		{"root", host.ReadonlyRootfs, true},
		{"tmpfs", host.Tmpfs, map[string]string{
			"/tmp":     "rw,exec,nosuid,nodev,mode=1777,size=2097152",
			"/scratch": "rw,noexec,nosuid,nodev,mode=1777,size=33554432",
		}},
		{"network", string(host.NetworkMode), "none"},
		{"user", c.Config.User, "12345:12345"},
		{"env", c.Config.Env[:4], []string{"HOME=" + base + "/home", "GOTMPDIR=" + base + "/home/.cache/tmp", "LANG=C", "SIGN=it's\ta \u202etest"}},
		{"capabilities", []any{host.CapDrop, host.CapAdd, host.Privileged}, []any{[]string{"ALL"}, []string(nil), false}},
		{"new privileges", host.SecurityOpt[0], "no-new-privileges"},
		{"name servers", []string{host.DNS[0].String()}, []string{"192.0.2.1"}},
		{"hosts", host.ExtraHosts, []string{"internal.example:192.0.2.2"}},
		{"processes", *host.PidsLimit, int64(99)},
		{"memory", []int64{host.Memory, host.MemorySwap}, []int64{256 << 20, 257 << 20}},
		{"processors", host.NanoCPUs, int64(5e8)},
		{"limits", ulimits, map[string][2]int64{"core": {0, 0}, "nofile": {100, 200}, "stack": {-1, -1}, "memlock": {65536, 65536}}},
		{"workdir", c.Config.WorkingDir, "/project"},
		{"mounts", mounts, map[string]string{
			"/project": private + " ro rprivate", "/agent": h.workspace + " ro rprivate", "/cache": base + "/cache rw rprivate", "/deep": h.workspace + "/deep ro rprivate",
			base + "/home": own + " rw rprivate",
		}},
		{"image", c.Config.Image, imageName()},
		{"command", append(slices.Clone([]string(c.Config.Entrypoint)), c.Config.Cmd[len(c.Config.Cmd)-1]), []string{agentTarget, "serve"}},
		{"namespaces", []string{string(host.IpcMode), string(host.CgroupnsMode), string(host.PidMode), string(host.UTSMode), string(host.UsernsMode)}, []string{"private", "private", "", "", ""}},
		{"devices and the like", []int{len(host.Devices), len(host.DeviceRequests), len(host.VolumesFrom), len(host.PortBindings), len(host.GroupAdd), len(host.Sysctls)}, make([]int, 6)},
		{"hidden", host.MaskedPaths, maskedPaths},
		{"read-only", host.ReadonlyPaths, readOnlyPaths},
		{"log and restart", host.LogConfig.Type + " " + string(host.RestartPolicy.Name), "none no"},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("%s (- want, + got):\n%s", row.what, diff)
		}
	}
}

// confining is what of a container confines, in a form that does not depend on who asked for it.
func confining(t *testing.T, c *container.InspectResponse) map[string]any {
	t.Helper()
	host := *c.HostConfig
	mounts := map[string]any{}
	for _, m := range c.Mounts {
		if m.Destination != doorTarget { // a command line has no gateway to meet there
			mounts[m.Destination] = []any{m.Source, m.RW, m.Propagation}
		}
	}
	options := map[string]any{}
	for _, option := range host.SecurityOpt {
		key, value, _ := strings.Cut(option, "=")
		var profile any = value
		if key == "seccomp" {
			if err := json.Unmarshal([]byte(value), &profile); err != nil {
				t.Fatal(err)
			}
		}
		options[strings.TrimSuffix(key, ":true")] = profile
	}
	// Said in other ways, or what a command line cannot say.
	host.Mounts, host.Binds, host.SecurityOpt, host.MaskedPaths, host.ReadonlyPaths = nil, nil, nil, nil, nil
	if host.OomKillDisable != nil && !*host.OomKillDisable { // version 2 of control groups has none; the command line says it all the same
		host.OomKillDisable = nil
	}
	slices.SortFunc(host.Ulimits, func(a, b *container.Ulimit) int { return strings.Compare(a.Name, b.Name) })
	raw, err := json.Marshal(host)
	if err != nil {
		t.Fatal(err)
	}
	var rest map[string]any
	if err := json.Unmarshal(raw, &rest); err != nil {
		t.Fatal(err)
	}
	for key, value := range rest { // nothing is written as null, "", 0, [] or {}
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				delete(rest, key)
			}
		case map[string]any:
			if len(v) == 0 {
				delete(rest, key)
			}
		case nil:
			delete(rest, key)
		}
	}
	delete(rest, "ConsoleSize")
	env := slices.Sorted(slices.Values(c.Config.Env))
	return map[string]any{
		"mounts": mounts, "options": options, "host": rest, "env": env, "user": c.Config.User, "workdir": c.Config.WorkingDir,
		"hostname": c.Config.Hostname, "image": c.Config.Image, "entrypoint": []string(c.Config.Entrypoint), "volumes": len(c.Config.Volumes),
		"health": c.Config.Healthcheck, "signal": c.Config.StopSignal, "timeout": c.Config.StopTimeout, "tty": c.Config.Tty,
	}
}
