package native

import (
	"context"
	"fmt"
	"io"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// settingsOf is what the program inside must know.
func (e *Engine) settingsOf(b *box, spec *sandbox.Spec) inside.Setup {
	settings := inside.SetupOf(spec)
	if spec.Network.Mode == sandbox.NetworkEgress {
		settings.Env = append(egressEnv(), settings.Env...)
	}
	if b.temporary != "" {
		settings.Env = append([]string{"TMPDIR=" + b.temporary}, settings.Env...)
	}
	settings.OOMKills = b.oomKills
	if b.record != nil {
		settings.Detach = b.terms(spec)
	}
	return settings
}

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
