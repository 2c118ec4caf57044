package docker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/disk"
)

// Engine makes sandboxes in a container engine. Its containers stay when it is closed; what runs in them ends.
type Engine struct {
	options Options
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	live    sync.WaitGroup // what works beside calls
	disk    disk.Book
	boxes   sandbox.WaitingRoom[*box]

	mu       sync.Mutex
	endpoint endpoint
	// contained is what shows that the gateway runs in a container and the container engine does not; "" if nothing does.
	contained string
	client    *client.Client // made at the first use
	watching  bool           // events are
	closed    bool
}

// New returns an engine. It connects when it is first used.
func New(options Options) *Engine {
	e := &Engine{options: options, log: options.Log}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Name is "docker".
func (*Engine) Name() string { return Name }

// connect returns the client, which keeps its connections. Where the container engine is was decided at the first use: a
// sandbox must not be looked for elsewhere later.
func (e *Engine) connect() (*client.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the sandbox engine is closed")
	}
	if e.client != nil {
		return e.client, nil
	}
	found, err := findEndpoint()
	if err != nil {
		return nil, err
	}
	c, err := found.open()
	if err != nil {
		return nil, err
	}
	e.endpoint, e.client, e.contained = found, c, found.contained()
	return c, nil
}

func (e *Engine) where() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.endpoint.host
}

func (e *Engine) absent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.endpoint.absent()
}

// checkPlace refuses to have paths mounted that mean something else to the container engine.
func (e *Engine) checkPlace(spec *sandbox.Spec) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return checkPlace(spec, e.contained)
}

// Ensure returns the running sandbox of a name, starting or making it where necessary.
func (e *Engine) Ensure(ctx context.Context, spec *sandbox.Spec) (sandbox.Handle, error) {
	begin := func() *box { return &box{engine: e, name: spec.Name, done: make(chan struct{})} }
	b, err := e.boxes.Ensure(ctx, spec, begin, func(b *box) error { return e.fill(ctx, b, spec) })
	if err != nil {
		return nil, err
	}
	return b, nil
}

func conflict(name, why string) error {
	return sandbox.Errorf(sandbox.CodeConflict, "there is a container %s already: %s", name, why)
}

// fill makes the sandbox that Ensure promised.
func (e *Engine) fill(ctx context.Context, b *box, spec *sandbox.Spec) error {
	err := e.start(ctx, b, spec)
	if err != nil {
		_ = e.removeDoor(spec.Name) // the next start makes it again, whatever is there
		close(b.done)
		return err
	}
	e.watchEvents()
	e.live.Go(b.watch)
	b.watchDisk(spec)
	return nil
}

// inspect returns the container of a name, nil if there is none. What is not ours for this instance is a conflict.
func (e *Engine) inspect(ctx context.Context, name string) (*container.InspectResponse, error) {
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	found, err := c.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(ctx, "look at the container "+name, err)
	}
	// A name also finds containers whose id begins with it.
	if strings.TrimPrefix(found.Container.Name, "/") != name {
		return nil, nil
	}
	if !e.owns(found.Container.Config) {
		return nil, conflict(name, "it is not a sandbox of this Toolward home")
	}
	return &found.Container, nil
}

func (e *Engine) owns(config *container.Config) bool {
	return config != nil && config.Labels[labelSandbox] == "1" && config.Labels[labelInstance] == e.options.Instance
}

// Lookup says what exists under a name.
func (e *Engine) Lookup(ctx context.Context, name string) (sandbox.State, error) {
	found, err := e.inspect(ctx, name)
	if err != nil {
		return sandbox.State{}, err
	}
	if found == nil {
		return sandbox.State{}, sandbox.Errorf(sandbox.CodeNotFound, "there is no sandbox %s", name)
	}
	return e.state(name, found.ID, found.Config.Image, found.State != nil && found.State.Running, found.Config.Labels), nil
}

func (e *Engine) state(name, id, image string, running bool, labels map[string]string) sandbox.State {
	s := sandbox.State{
		Name: name, Engine: Name, EngineID: id, ScopeKey: labels[labelScope], Hash: labels[labelHash],
		Instance: labels[labelInstance], Image: image, Running: running,
	}
	if ms, err := strconv.ParseInt(labels[labelCreated], 10, 64); err == nil {
		s.Created = time.UnixMilli(ms)
	}
	return s
}

// List returns the sandboxes of this instance.
func (e *Engine) List(ctx context.Context) ([]sandbox.State, error) {
	c, err := e.connect()
	if err != nil {
		return nil, err
	}
	if e.absent() {
		return nil, nil
	}
	found, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: e.ownContainers()})
	if err != nil {
		return nil, explain(ctx, "list containers", err)
	}
	var states []sandbox.State
	for _, item := range found.Items {
		if len(item.Names) == 0 || item.Labels[labelInstance] != e.options.Instance {
			continue
		}
		name := strings.TrimPrefix(item.Names[0], "/")
		if isUnfinished(name) {
			continue // it is no sandbox yet
		}
		states = append(states, e.state(name, item.ID, item.Image, item.State == container.StateRunning, item.Labels))
	}
	return states, nil
}

// ownContainers are those of this instance.
func (e *Engine) ownContainers() client.Filters {
	return make(client.Filters).Add("label", labelSandbox+"=1", labelInstance+"="+e.options.Instance)
}

// Stop ends everything that runs in a sandbox. Its container stays.
func (e *Engine) Stop(ctx context.Context, name string) error {
	if err := e.settle(ctx, name); err != nil {
		return err
	}
	found, err := e.inspect(ctx, name)
	if err != nil || found == nil || found.State == nil || !found.State.Running {
		return err
	}
	return e.halt(ctx, found.ID, stopSeconds)
}

// Remove removes a sandbox with its container.
func (e *Engine) Remove(ctx context.Context, name string) error {
	if err := e.settle(ctx, name); err != nil {
		return err
	}
	for _, one := range []string{name, unfinished(name)} {
		found, err := e.inspect(ctx, one)
		if err != nil {
			return err
		}
		if found != nil {
			if err := e.discard(ctx, found.ID); err != nil {
				return err
			}
		}
	}
	return e.removeDoor(name)
}

// removeDoor removes the directory of a sandbox's socket.
func (e *Engine) removeDoor(name string) error {
	at, err := e.doorDirectory(name)
	if err != nil {
		return nil // there was none either
	}
	if err := os.RemoveAll(at); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "remove the place of the sandbox's socket: %v", err)
	}
	_ = os.Remove(filepath.Dir(at)) // others may be there
	return nil
}

// settle lets go of a sandbox that this engine holds.
func (e *Engine) settle(ctx context.Context, name string) error {
	b, ok, err := e.boxes.Settled(ctx, name)
	if !ok || err != nil {
		return err
	}
	b.letGo()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return sandbox.Errorf(sandbox.CodeTimeout, "wait for the end of sandbox %s: %v", name, context.Cause(ctx))
	}
}

// halt stops a container, politely for some seconds.
func (e *Engine) halt(ctx context.Context, id string, seconds int) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	_, err = c.ContainerStop(ctx, id, client.ContainerStopOptions{Timeout: &seconds})
	if err == nil || isNotFound(err) || cerrdefs.IsNotModified(err) {
		return nil
	}
	return explain(ctx, "stop a container", err)
}

// discard removes a container, running or not, and waits until it is gone.
func (e *Engine) discard(ctx context.Context, id string) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	_, err = c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err == nil || isNotFound(err) {
		return nil
	}
	if !cerrdefs.IsConflict(err) {
		return explain(ctx, "remove a container", err)
	}
	removed := c.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
	select { // somebody else removes it already
	case err = <-removed.Error:
	case <-removed.Result:
		return nil
	}
	if isNotFound(err) {
		return nil
	}
	return explain(ctx, "remove a container", err)
}

// Close lets go of every sandbox and waits until what ran in them has ended. Containers stay for the next start.
func (e *Engine) Close() error {
	held, first := e.boxes.Close()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	failed := make([]error, len(held))
	var ending sync.WaitGroup
	for i, name := range held {
		ending.Go(func() { failed[i] = e.Stop(ctx, name) })
	}
	ending.Wait()
	e.mu.Lock()
	e.closed = true
	c := e.client
	e.mu.Unlock()
	e.cancel()
	e.live.Wait()
	if c != nil {
		failed = append(failed, c.Close())
	}
	return errors.Join(failed...)
}

// closeTime bounds how long sandboxes may take to end when the engine is closed.
const closeTime = 30 * time.Second

func isNotFound(err error) bool { return err != nil && cerrdefs.IsNotFound(err) }

// explain makes an error of what the container engine says.
func explain(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*sandbox.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return sandbox.Errorf(sandbox.CodeTimeout, "%s: the container engine did not answer in time: %v", what, err)
	case ctx.Err() != nil:
		return sandbox.Errorf(sandbox.CodeFailed, "%s: it was given up: %v", what, context.Cause(ctx))
	case client.IsErrConnectionFailed(err):
		e := sandbox.Errorf(sandbox.CodeUnavailable, "%s: %v", what, err)
		e.Fix = "install and start Docker or Podman, or set DOCKER_HOST"
		return e
	case cerrdefs.IsPermissionDenied(err):
		return sandbox.Errorf(sandbox.CodeUnavailable, "%s: the container engine refuses: %v", what, err)
	}
	return sandbox.Errorf(sandbox.CodeUnavailable, "%s: %v", what, err)
}
