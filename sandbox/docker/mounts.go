package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/moby/api/types/mount"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
	"github.com/toolward/toolward/sandbox/native/setup"
)

// mounts is what a container gets of the host, and how it is known that it got just that.
type mounts struct {
	list     []mount.Mount
	identity []identified
	program  *inside.Program
	// ownNumbers: the runtime numbers files itself, as gVisor does.
	ownNumbers bool
	door       string // directory in which the program inside meets the gateway; "" where it cannot
}

// identified is a file of the host that must stand at a path inside. The container engine opens sources by their names,
// as root: between our look and its own, a sandbox that shares the workspace could have put a symbolic link there.
type identified struct {
	target        string
	source        string
	device, inode uint64
	found         os.FileInfo
	pinned        *os.File // nil: only what was found is known
}

// mountsOf says what is mounted. Sources that are missing are errors: container engines would make directories.
func mountsOf(spec *sandbox.Spec, program *inside.Program, door string) (*mounts, error) {
	m := &mounts{program: program, door: door}
	if err := m.add(spec, program.Path, agentTarget, false); err != nil {
		return nil, err
	}
	if door != "" {
		if err := m.add(spec, door, doorTarget, false); err != nil {
			return nil, err
		}
	}
	if err := m.addSources(spec); err != nil {
		return nil, err
	}
	for i := range spec.Mounts {
		one := &spec.Mounts[i]
		if hidden(spec.Mounts, i) {
			continue
		}
		info, err := statMount(one)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "mount %s: %v", one.Source, err)
		}
		m.identify(one.Source, one.Target, info, one.Pinned)
	}
	if spec.Network.Mode == sandbox.NetworkEgress {
		// The directory, not the socket: a gateway that starts again makes another one. Read-only, so that what runs inside
		// cannot put its own in the place.
		if err := m.add(spec, spec.Network.EgressDir, setup.EgressDir, false); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addSources has what the Spec names mounted, and what is protected in it again, read-only.
func (m *mounts) addSources(spec *sandbox.Spec) error {
	for i, one := range spec.Mounts {
		if hidden(spec.Mounts, i) {
			continue
		}
		if err := m.add(spec, one.Source, one.Target, one.Writable); err != nil {
			return err
		}
	}
	for _, target := range spec.Protected {
		if err := m.protect(spec, target); err != nil {
			return err
		}
	}
	return nil
}

// hidden reports whether a later mount, a bind, takes the place of one. Container engines mount nothing twice at one place.
func hidden(all []sandbox.Mount, i int) bool {
	return slices.ContainsFunc(all[i+1:], func(later sandbox.Mount) bool { return path.Clean(later.Target) == path.Clean(all[i].Target) })
}

// add has a source of this machine mounted.
func (m *mounts) add(spec *sandbox.Spec, source, target string, writable bool) error {
	source, err := onEngine(spec.Docker.HostPaths, source)
	if err != nil {
		return err
	}
	m.list = append(m.list, mount.Mount{
		Type: mount.TypeBind, Source: source, Target: path.Clean(target), ReadOnly: !writable,
		BindOptions: &mount.BindOptions{
			Propagation: mount.PropagationRPrivate,
			// Old engines make only the top of a tree read-only: what is mounted below would stay writable.
			NonRecursive: !writable,
		},
	})
	return nil
}

func statMount(m *sandbox.Mount) (os.FileInfo, error) {
	if m.Pinned != nil {
		return m.Pinned.Stat()
	}
	return os.Lstat(m.Source)
}

func (m *mounts) identify(source, target string, info os.FileInfo, pinned *os.File) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		m.identity = append(m.identity, identified{path.Clean(target), source, uint64(st.Dev), st.Ino, info, pinned})
	}
}

// protect makes a path below a writable mount read-only. What was removed since it was found needs no protection, and a
// symbolic link cannot be mounted on.
func (m *mounts) protect(spec *sandbox.Spec, target string) error {
	if !path.IsAbs(target) {
		return sandbox.Errorf(sandbox.CodeConfig, "the protected path %q is not absolute", target)
	}
	target = path.Clean(target)
	holder := holderOf(spec.Mounts, target)
	if holder == nil || !holder.Writable {
		return nil
	}
	root, err := os.OpenRoot(holder.Source)
	if err != nil {
		return nil // a single file: nothing is below it
	}
	defer root.Close()
	mountAt := func(target string, writable bool) error {
		relative := strings.TrimPrefix(strings.TrimPrefix(target, path.Clean(holder.Target)), "/")
		info, err := root.Lstat(filepath.FromSlash(relative))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil
		}
		if err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "look at the protected %s: %v", target, err)
		}
		if slices.ContainsFunc(m.list, func(other mount.Mount) bool { return other.Target == target }) {
			return nil
		}
		source := filepath.Join(holder.Source, filepath.FromSlash(relative))
		m.identify(source, target, info, nil)
		return m.add(spec, source, target, writable)
	}
	if dir := path.Dir(target); path.Base(dir) == ".git" && dir != path.Clean(holder.Target) {
		// A directory that something is mounted on cannot be renamed, so .git cannot be put aside and made anew.
		if err := mountAt(dir, true); err != nil {
			return err
		}
	}
	return mountAt(target, false)
}

// holderOf is the mount that shows a path.
func holderOf(list []sandbox.Mount, target string) *sandbox.Mount {
	var holder *sandbox.Mount
	for i := range list {
		root := strings.TrimSuffix(path.Clean(list[i].Target), "/")
		if strings.HasPrefix(target, root+"/") && (holder == nil || len(root) >= len(path.Clean(holder.Target))) {
			holder = &list[i]
		}
	}
	return holder
}

// verify looks at what the container got, before anything else runs there. The program inside tells the truth at this
// time: it was mounted from this machine and nothing has run beside it.
func (m *mounts) verify(ctx context.Context, c *inside.Client) error {
	for i := range m.identity {
		one := &m.identity[i]
		info, err := c.Lstat(ctx, one.target)
		if code := sandbox.CodeOf(err); code == sandbox.CodeDenied {
			continue // whoever runs inside does not get there
		}
		if err != nil {
			return sandbox.Errorf(sandbox.CodeOf(err), "look at the mounted %s: %v", one.target, err)
		}
		same := info.Identity.Device == one.device && info.Identity.Inode == one.inode
		if !same && m.ownNumbers {
			if same, err = one.sameState(ctx, c); err != nil {
				return sandbox.Errorf(sandbox.CodeOf(err), "look at the mounted %s: %v", one.target, err)
			}
		}
		if !same {
			return &sandbox.Error{
				Code: sandbox.CodeChanged,
				Text: one.source + " was replaced after it was checked, or the container engine is on another machine: it mounted something else at " + one.target,
				Fix:  "where the gateway itself runs in a container, set sandbox.docker.hostPathMap",
			}
		}
	}
	return nil
}

// fileState is what tells a file from others where it has other numbers inside.
type fileState struct {
	directory         bool
	permissions       fs.FileMode
	size              int64 // of a regular file
	modified, changed int64
}

// sameState reports whether what is mounted is the file that was checked: it is in the same state, and is again when the
// other one was touched. Whoever owns a file can make it like another, also in the time of its last change if the other
// changes at that moment; but not the other like it, each time that we touch it.
func (o *identified) sameState(ctx context.Context, c *inside.Client) (bool, error) {
	for range 3 {
		same, err := o.sameNow(ctx, c)
		if !same || err != nil {
			return false, err
		}
		if o.pinned == nil || !touch(o.pinned) {
			break // it is somebody else's, or cannot be changed: what was seen must do
		}
	}
	return true, nil
}

// sameNow compares once. The file may be in use: then it is looked at again.
func (o *identified) sameNow(ctx context.Context, c *inside.Client) (bool, error) {
	const attempts = 10
	for range attempts {
		before, known := o.state()
		info, err := c.Lstat(ctx, o.target)
		if err != nil || !known {
			return false, err
		}
		seen := fileState{
			directory: info.Type == sandbox.TypeDirectory, permissions: info.Mode.Perm(),
			modified: info.Identity.Modified, changed: info.Identity.Changed,
		}
		if info.Type == sandbox.TypeRegular {
			seen.size = info.Size
		}
		if seen == before {
			return true, nil
		}
		if after, _ := o.state(); after == before {
			return false, nil
		}
	}
	return false, nil
}

// state is that of the file that was checked, now, where it is held open.
func (o *identified) state() (fileState, bool) {
	if o.pinned == nil {
		return stateOf(o.found)
	}
	info, err := o.pinned.Stat()
	if err != nil {
		return fileState{}, false
	}
	return stateOf(info)
}

// onEngine is what a path of the gateway is on the container engine's machine.
func onEngine(hostPaths map[string]string, source string) (string, error) {
	source = filepath.Clean(source)
	if len(hostPaths) == 0 {
		return source, nil
	}
	best, longest := "", -1
	for directory := range hostPaths {
		d := filepath.Clean(directory)
		if (source == d || strings.HasPrefix(source, strings.TrimSuffix(d, "/")+"/")) && len(d) > longest {
			best, longest = directory, len(d)
		}
	}
	if longest < 0 {
		return "", &sandbox.Error{
			Code: sandbox.CodeConfig, Text: "sandbox.docker.hostPathMap does not say what " + source + " is on the container engine's machine",
			Fix: "add the directory that holds it",
		}
	}
	return filepath.Join(hostPaths[best], strings.TrimPrefix(source, filepath.Clean(best))), nil
}

// checkPlace refuses to have paths mounted that mean something else to the container engine.
func checkPlace(spec *sandbox.Spec, sign string) error {
	if sign == "" || len(spec.Docker.HostPaths) > 0 {
		return nil
	}
	return &sandbox.Error{
		Code: sandbox.CodeConfig,
		Text: "the gateway runs in a container itself (" + sign + "), and the container engine resolves what is mounted on its own machine",
		Fix:  `set sandbox.docker.hostPathMap to what the gateway's directories are there, for instance {"/home/toolward": "/srv/toolward"}`,
	}
}
