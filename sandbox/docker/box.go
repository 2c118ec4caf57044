package docker

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// insideClient is what the connection to the program inside does of a [sandbox.Handle].
type insideClient struct{ *inside.Client }

// box is one sandbox.
type box struct {
	client *insideClient
	engine *Engine
	name   string
	id     string // of the container
	group  *group // nil where its control group cannot be seen

	done chan struct{} // closed when it has ended
	ooms atomic.Int64  // that the container engine told of

	mu    sync.Mutex
	state sandbox.State
}

// handle is a box that was made.
var _ sandbox.Handle = (*box)(nil)

func (b *box) setState(s sandbox.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
}

// Runs reports whether the program inside answers; false also where the sandbox could not be made.
func (b *box) Runs() bool {
	if b.client == nil {
		return false
	}
	select {
	case <-b.client.Done():
		return false
	default:
		return true
	}
}

// letGo ends the channel. The program inside ends with it, and so does the container.
func (b *box) letGo() {
	if b.client != nil {
		_ = b.client.Close() // it always succeeds
	}
}

// endTime is how long a container may take to end by itself when its channel has ended.
const endTime = 5 * time.Second

// watch ends what is left of the sandbox when the channel has ended, whoever ended it.
func (b *box) watch() {
	<-b.client.Done()
	b.finish()
}

// finish waits for the container's end, ends it if it does not by itself, and takes the sandbox out of the engine.
func (b *box) finish() {
	e := b.engine
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := b.waitStopped(ctx); err != nil {
		if err := e.halt(ctx, b.id, 0); err != nil {
			e.log.Warn("a sandbox was lost and its container could not be stopped", "name", b.name, "error", err)
		}
	}
	b.mu.Lock()
	b.state.Running = false
	b.mu.Unlock()
	e.boxes.Leave(b.name, b)
	close(b.done)
}

func (b *box) waitStopped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	c, err := b.engine.connect()
	if err != nil {
		return err
	}
	stopped := c.ContainerWait(ctx, b.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-stopped.Error:
		if isNotFound(err) {
			return nil
		}
		return err
	case <-stopped.Result:
		return nil
	}
}

// State is the sandbox as the engine knows it.
func (b *box) State() sandbox.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Done is closed when the sandbox has ended.
func (b *box) Done() <-chan struct{} { return b.done }

// Close lets go of the sandbox: what runs in it ends, its container stays.
func (b *box) Close() error {
	b.letGo()
	<-b.done
	return nil
}

// oomKills is how often memory ran out, seen from outside.
func (b *box) oomKills() int64 {
	if n, ok := b.group.oomKills(); ok {
		return n
	}
	return b.ooms.Load()
}

// Stats is what the sandbox uses, as its container engine counts it.
func (b *box) Stats(ctx context.Context) (sandbox.Stats, error) {
	c, err := b.engine.connect()
	if err != nil {
		return sandbox.Stats{}, err
	}
	if !b.Runs() {
		return sandbox.Stats{}, sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s has ended", b.name)
	}
	result, err := c.ContainerStats(ctx, b.id, client.ContainerStatsOptions{})
	if err != nil {
		return sandbox.Stats{}, explain(ctx, "ask what sandbox "+b.name+" uses", err)
	}
	defer result.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(result.Body, 1<<20)).Decode(&s); err != nil {
		return sandbox.Stats{}, explain(ctx, "ask what sandbox "+b.name+" uses", err)
	}
	stats := sandbox.Stats{
		CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage), Processors: int(s.CPUStats.OnlineCPUs), Memory: int64(s.MemoryStats.Usage),
		MemoryPeak: int64(s.MemoryStats.MaxUsage), Pids: int64(s.PidsStats.Current), OOMKills: b.oomKills(),
	}
	stats.Cache = min(stats.Memory, pageCache(s.MemoryStats.Stats))
	stats.Memory -= stats.Cache
	if stats.MemoryPeak == 0 {
		stats.MemoryPeak = b.group.memoryPeak() // control groups of version 2
	}
	return stats, nil
}

// pageCache is what a container engine counts as page cache; 0 where it does not tell. It is the pages of files that can be
// given back: "cache" and "file" hold memory file systems as well, which cannot.
func pageCache(counted map[string]uint64) int64 {
	if _, v1 := counted["total_cache"]; v1 {
		return int64(counted["total_active_file"] + counted["total_inactive_file"])
	}
	return int64(counted["active_file"] + counted["inactive_file"])
}

// Start starts a command.
func (b *box) Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error) {
	return b.client.Start(ctx, command)
}

// Stat says what a path leads to.
func (b *box) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return b.client.Stat(ctx, path)
}

// Lstat says what a path is.
func (b *box) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return b.client.Lstat(ctx, path)
}

// ReadFile reads a part of a file.
func (b *box) ReadFile(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.FileInfo, error) {
	return b.client.ReadFile(ctx, path, offset, limit)
}

// WriteFile makes data the content of a file.
func (b *box) WriteFile(ctx context.Context, path string, data []byte, options sandbox.WriteOptions) (sandbox.FileInfo, error) {
	return b.client.WriteFile(ctx, path, data, options)
}

// Mkdir creates a directory and its missing parents.
func (b *box) Mkdir(ctx context.Context, path string) error { return b.client.Mkdir(ctx, path) }

// Remove removes what stands at a path.
func (b *box) Remove(ctx context.Context, path string, options sandbox.RemoveOptions) error {
	return b.client.Remove(ctx, path, options)
}

// Rename moves a file to a name that does not exist.
func (b *box) Rename(ctx context.Context, from, to string) error {
	return b.client.Rename(ctx, from, to)
}

// Ports are those on which programs inside listen.
func (b *box) Ports(ctx context.Context) ([]sandbox.Port, bool, error) { return b.client.Ports(ctx) }

// Connect connects to a port inside.
func (b *box) Connect(ctx context.Context, port uint16) (sandbox.Connection, error) {
	return b.client.Connect(ctx, port)
}

// List returns entries of a directory.
func (b *box) List(ctx context.Context, path string, options sandbox.ListOptions) ([]sandbox.Entry, bool, error) {
	return b.client.List(ctx, path, options)
}
