package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// unfinished is the name of a container until its set-up command has ended well: a gateway that is killed meanwhile must
// not find a half-made sandbox under the name of a whole one.
func unfinished(name string) string { return name + unfinishedEnd }

// isUnfinished reports whether a name is one of those. No sandbox is named so: the names of all end with a hash, or are
// "shared".
func isUnfinished(name string) bool { return strings.HasSuffix(name, unfinishedEnd) }

const unfinishedEnd = ".setup"

// start brings a sandbox up: a container that is there already, or a new one.
func (e *Engine) start(ctx context.Context, b *box, spec *sandbox.Spec) error {
	daemon, err := e.ask(ctx)
	if err != nil {
		return err
	}
	if err := e.checkPlace(spec); err != nil {
		return err
	}
	if err := daemon.refuse(spec); err != nil {
		return err
	}
	program, err := e.findProgram(ctx)
	if err != nil {
		return err
	}
	at := ""
	sharesKernel := daemon.sharesKernel(spec)
	if e.hasDoor(sharesKernel) {
		if at, err = e.doorDirectory(spec.Name); err == nil {
			err = makeDoorDirectory(at)
		}
		if err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "find a place for sockets: %v", err)
		}
	}
	m, err := mountsOf(spec, program, at)
	if err != nil {
		return err
	}
	m.ownNumbers = !sharesKernel
	wanted, err := e.creation(spec, m, daemon)
	if err != nil {
		return err
	}
	found, err := e.existing(ctx, spec)
	if err != nil {
		return err
	}
	if found != nil && !same(found, &wanted) {
		// What is protected depends on what the workspace holds, and is no part of the hash.
		e.log.Info("a sandbox is made anew, its mounts have changed", "name", spec.Name)
		if err := e.discard(ctx, found.ID); err != nil {
			return err
		}
		found = nil
	}
	if found == nil {
		return e.create(ctx, b, spec, wanted, m)
	}
	if found.State != nil && (found.State.Running || found.State.Paused) {
		// An earlier gateway's: its channel is gone, and with it whatever could speak to what runs there.
		if err := e.halt(ctx, found.ID, 0); err != nil {
			return err
		}
	}
	if err := e.enter(ctx, b, spec, found.ID, m); err != nil {
		e.abandon(found.ID, false)
		return err
	}
	b.setState(e.state(spec.Name, found.ID, found.Config.Image, true, found.Config.Labels))
	return nil
}

// existing returns the container of a sandbox, nil if there is none. One that is not of this scope and hash is a
// conflict.
func (e *Engine) existing(ctx context.Context, spec *sandbox.Spec) (*container.InspectResponse, error) {
	found, err := e.inspect(ctx, spec.Name)
	if found == nil || err != nil {
		return nil, err
	}
	labels := found.Config.Labels
	if scope := labels[labelScope]; scope != spec.ScopeKey {
		return nil, conflict(spec.Name, fmt.Sprintf("it was made for %q", scope))
	}
	if spec.Hash == "" || labels[labelHash] != spec.Hash {
		return nil, conflict(spec.Name, "it was made from another configuration")
	}
	return found, nil
}

// same reports whether a container has the mounts and the command that are wanted now. What it has mounted is told by all
// engines alike; what was asked for is not.
func same(found *container.InspectResponse, wanted *client.ContainerCreateOptions) bool {
	if !slices.Equal(found.Config.Entrypoint, wanted.Config.Entrypoint) || !slices.Equal(found.Config.Cmd, wanted.Config.Cmd) {
		return false
	}
	if len(found.Mounts) != len(wanted.HostConfig.Mounts) {
		return false
	}
	for _, m := range wanted.HostConfig.Mounts {
		if !slices.ContainsFunc(found.Mounts, func(have container.MountPoint) bool {
			return have.Type == m.Type && have.Source == m.Source && have.Destination == m.Target && have.RW == !m.ReadOnly
		}) {
			return false
		}
	}
	return true
}

// create makes a container, and removes it again if it does not become a sandbox.
func (e *Engine) create(ctx context.Context, b *box, spec *sandbox.Spec, wanted client.ContainerCreateOptions, m *mounts) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	if err := e.CheckImage(ctx, spec.Docker.Image); err != nil {
		return err
	}
	if spec.Setup != "" {
		wanted.Name = unfinished(spec.Name)
		left, err := e.inspect(ctx, wanted.Name)
		if err != nil {
			return err
		}
		if left != nil {
			if err := e.discard(ctx, left.ID); err != nil {
				return err
			}
		}
	}
	created, err := c.ContainerCreate(ctx, wanted)
	if err != nil {
		return explain(ctx, "create the container "+spec.Name, err)
	}
	err = e.enter(ctx, b, spec, created.ID, m)
	if err == nil && spec.Setup != "" {
		if err = setUp(ctx, b.client, spec.Setup); err == nil {
			_, err = c.ContainerRename(ctx, created.ID, client.ContainerRenameOptions{NewName: spec.Name})
			err = explain(ctx, "name the container "+spec.Name, err)
		}
	}
	if err != nil {
		b.letGo()
		e.abandon(created.ID, true)
		return err
	}
	b.setState(e.state(spec.Name, created.ID, spec.Docker.Image, true, wanted.Config.Labels))
	return nil
}

// enter attaches to a container, starts it and greets the program inside.
func (e *Engine) enter(ctx context.Context, b *box, spec *sandbox.Spec, id string, m *mounts) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	// First attached, then started: nothing that is said is lost, and there is never another at the other end.
	attached, err := c.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: m.door == "", Stdout: true, Stderr: true})
	if err != nil {
		return explain(ctx, "attach to the container "+spec.Name, err)
	}
	stream := newChannel(attached.Conn)
	connected, err := e.greet(ctx, b, spec, id, m, stream)
	if err != nil {
		_ = stream.Close() // it is not used
		if said := stream.complaints(); said != "" {
			return notStarted(sandbox.Errorf(sandbox.CodeOf(err), "%v; it said: %s", err, said), m.program, spec.Docker.Image)
		}
		return err
	}
	b.client = &insideClient{connected}
	return nil
}

// greet starts a container and connects to the program inside.
func (e *Engine) greet(ctx context.Context, b *box, spec *sandbox.Spec, id string, m *mounts, stream *channel) (*inside.Client, error) {
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	var at *door
	if m.door != "" {
		if at, err = openDoor(m.door); err != nil {
			return nil, sandbox.Errorf(sandbox.CodeFailed, "make a socket for the sandbox: %v", err)
		}
		defer at.close()
	}
	if _, err := c.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return nil, explain(ctx, "start the container "+spec.Name, notStarted(err, m.program, spec.Docker.Image))
	}
	var conn io.ReadWriteCloser = stream
	if at != nil {
		if conn, err = at.meet(ctx, e.drain(stream)); err != nil {
			return nil, sandbox.Errorf(sandbox.CodeUnavailable, "start the container %s: %v", spec.Name, err)
		}
	}
	b.id = id
	b.group = e.groupOf(ctx, id)
	settings := inside.SetupOf(spec)
	if spec.Network.Mode == sandbox.NetworkEgress {
		settings.Env = append(egressEnv(), settings.Env...)
	}
	settings.OOMKills = b.oomKills
	connected, err := inside.Connect(ctx, conn, settings)
	if err != nil {
		return nil, err
	}
	if err := m.verify(ctx, connected); err != nil {
		_ = connected.Close() // it always succeeds
		return nil, err
	}
	return connected, nil
}

// drain reads what a container says on its standard streams until it has ended.
func (e *Engine) drain(stream *channel) (ended <-chan struct{}) {
	over := make(chan struct{})
	stop := context.AfterFunc(e.ctx, func() { _ = stream.Close() }) // it was only read
	e.live.Go(func() {
		defer close(over)
		_, _ = io.Copy(io.Discard, stream) // only that it has ended counts
		stop()
		_ = stream.Close() // as above
	})
	return over
}

// doorDirectory is where the program in a container of a name meets the gateway. It is the same for every start: the
// container has it mounted.
func (e *Engine) doorDirectory(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, sandbox.Brand, "doors", sandbox.Slug(e.options.Instance), name), nil
}

// makeDoorDirectory makes the place of a sandbox's socket. Other users of the machine cannot enter the directory above;
// whoever runs inside sees only this one and must be able to use it.
func makeDoorDirectory(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o755)
}

// abandon leaves nothing running of a sandbox that could not be made.
func (e *Engine) abandon(id string, remove bool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	clean := func() error { return e.halt(ctx, id, 0) }
	if remove {
		clean = func() error { return e.discard(ctx, id) }
	}
	if err := clean(); err != nil {
		e.log.Warn("a container that did not become a sandbox could not be removed", "container", id, "error", err)
	}
}

// setupOutput is how much of a failed set-up command's output is told.
const setupOutput = 4 << 10

// setUp runs the set-up command.
func setUp(ctx context.Context, c *insideClient, text string) error {
	process, err := c.Start(ctx, sandbox.Command{Shell: text})
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, process.Stdout()) // only what went wrong is told
	said := &lastBytes{}
	_, _ = io.Copy(said, process.Stderr()) // what came is told
	status, err := process.Wait(ctx)
	if err != nil {
		return err
	}
	if status.Code != 0 {
		return sandbox.Errorf(sandbox.CodeFailed, "the set-up command ended with %d: %s", status.Code, strings.TrimSpace(string(said.kept)))
	}
	return nil
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	if extra := len(l.kept) - setupOutput; extra > 0 {
		l.kept = append(l.kept[:0], l.kept[extra:]...)
	}
	return len(p), nil
}

// egressEnv tells programs inside about the gateway's proxy, in both spellings that are in use.
func egressEnv() []string {
	const http, socks = "http://127.0.0.1:3128", "socks5h://127.0.0.1:1080"
	var env []string
	for _, one := range [][2]string{{"HTTP_PROXY", http}, {"HTTPS_PROXY", http}, {"ALL_PROXY", socks}, {"NO_PROXY", "localhost,127.0.0.1,::1"}} {
		env = append(env, one[0]+"="+one[1], strings.ToLower(one[0])+"="+one[1])
	}
	return env
}
