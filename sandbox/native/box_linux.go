package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// client is what the connection to the program inside does of a [sandbox.Handle].
type client struct{ *inside.Client }

// box is one sandbox.
type box struct {
	*client
	engine *Engine
	helper *helper
	group  *group
	record *record // of one that goes on without the gateway; nil of others
	// temporary is where a sandbox that cannot have a /tmp of its own has one; "" for others.
	temporary string

	done  chan struct{} // closed when it has ended
	once  sync.Once
	err   error        // of the end
	ended atomic.Int64 // processes that watchMemory has ended

	noting sync.Mutex // held while the record is written or removed

	mu     sync.Mutex
	state  sandbox.State
	reason string // why it was ended, if we did it
}

var _ sandbox.Handle = (*box)(nil)

// adopt takes the connection over: the sandbox runs.
func (b *box) adopt(c *inside.Client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.client = &client{c}
	b.state.Running, b.state.EngineID, b.state.Detached = true, b.helper.id, b.record != nil
}

// begin uses the connection, and looks after what the kernel does not.
func (b *box) begin(c *inside.Client, spec *sandbox.Spec) {
	b.adopt(c)
	go b.watch() // not before: what a helper says at its end must be read
	b.watchDisk(spec)
	b.watchMemory(spec.Limits.Memory)
}

func (b *box) namespaced() bool { return b.engine.capabilities().Level != sandbox.LevelLandlock }

// Runs reports whether it was made and the program inside answers.
func (b *box) Runs() bool {
	if b.client == nil || !b.running() {
		return false
	}
	select {
	case <-b.client.Client.Done():
		return false
	default:
		return true
	}
}

func (b *box) running() bool {
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

// watch ends what is left of the sandbox when its first process has ended, whoever ended it, or can be told nothing more.
func (b *box) watch() {
	select {
	case <-b.done: // it was let go
		return
	case <-b.helper.exited:
	case <-b.client.Client.Done():
	}
	_ = b.end() // the next start removes what could not be removed
}

// end ends the sandbox and removes it from the engine.
func (b *box) end() error {
	b.once.Do(func() {
		if b.helper != nil {
			if !b.namespaced() {
				endAll(b.helper.pid)
			}
			// The first process of a process namespace takes all others with it.
			b.helper.end()
		}
		if b.group != nil {
			b.group.kill()
			b.err = b.group.remove()
		}
		b.noting.Lock()
		defer b.noting.Unlock()
		if b.record != nil {
			b.err = errors.Join(b.err, b.engine.supervised.remove(b.record.Name))
		}
		if b.temporary != "" {
			b.removeTemporary()
		}
		b.mu.Lock()
		b.state.Running = false
		b.mu.Unlock()
		b.engine.boxes.Leave(b.state.Name, b)
		close(b.done)
	})
	<-b.done
	if b.err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "sandbox %s has ended, but something of it is still there: %v", b.state.Name, b.err)
	}
	return nil
}

// State is the sandbox as the engine knows it.
func (b *box) State() sandbox.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Done is closed when the sandbox has ended.
func (b *box) Done() <-chan struct{} { return b.done }

// Close ends the sandbox: a native one lives as long as somebody holds it, unless it is to go on without.
func (b *box) Close() error {
	if b.record != nil {
		b.letGo()
		return nil
	}
	return b.end()
}

// Stats is what the sandbox uses, as its control group counts it where it has one.
func (b *box) Stats(context.Context) (sandbox.Stats, error) {
	if !b.running() {
		return sandbox.Stats{}, sandbox.Errorf(sandbox.CodeUnavailable, "sandbox %s has ended", b.state.Name)
	}
	if b.group == nil {
		return b.usage(), nil
	}
	return b.group.stats(), nil
}

// setupOutput is how much of a failed set-up command's output is told.
const setupOutput = 4 << 10

// setUp runs the set-up command.
func (b *box) setUp(ctx context.Context, text string) error {
	process, err := b.Start(ctx, sandbox.Command{Shell: text})
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, process.Stdout()) // only what went wrong is told
	said, _ := io.ReadAll(tail{process.Stderr()})
	status, err := process.Wait(ctx)
	if err != nil {
		return err
	}
	if status.Code != 0 {
		return sandbox.Errorf(sandbox.CodeFailed, "the set-up command ended with %d: %s", status.Code, last(said, setupOutput))
	}
	return nil
}

type tail struct{ io.Reader }

func last(text []byte, n int) string {
	if len(text) > n {
		return fmt.Sprintf("…%s", text[len(text)-n:])
	}
	return string(text)
}

// egressEnv tells programs inside about the gateway's proxy, in both spellings that are in use.
func egressEnv() []string {
	const http, socks = "http://127.0.0.1:3128", "socks5h://127.0.0.1:1080"
	var env []string
	for name, value := range map[string]string{
		"HTTP_PROXY": http, "HTTPS_PROXY": http, "ALL_PROXY": socks, "NO_PROXY": "localhost,127.0.0.1,::1",
		"http_proxy": http, "https_proxy": http, "all_proxy": socks, "no_proxy": "localhost,127.0.0.1,::1",
	} {
		env = append(env, name+"="+value)
	}
	return env
}
