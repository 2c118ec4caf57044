// Package egress makes every connection out of a sandbox a call: of the internal tool egress, through the gateway.
//
// A sandbox with the network egress reaches a Unix socket and nothing else. Each has one of its own, so that the socket says
// who calls: the sessions that use that sandbox. Behind it a [netguard.Proxy] looks names up and dials public addresses only,
// once the gateway has admitted the call.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/toolward/toolward/sandbox/settings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/sandbox/fleet"
)

// Gate decides calls. *toolward.Gateway does.
type Gate interface {
	Admit(context.Context, toolward.Call) (*toolward.Pass, error)
	Refuse(context.Context, toolward.Call, *toolward.Refusal) *toolward.Refusal
	Explain(context.Context, toolward.Call, toolward.ExplainOptions) toolward.Trace
}

// Options say what proxies work with. All but Guard and Log are required.
type Options struct {
	Dir      string                    // of this package alone; what is in it is removed at start
	Gate     func() Gate               // asked for each connection; nil refuses
	Remotes  string                    // file that remembers the git remotes of workspaces; "" reaches none by them
	Own      func(port uint16) bool    // whether a port of this machine is the gateway's
	Levels   toolward.Sessions         // how tense sessions are
	Settings func() *settings.Settings // in force
	Guard    *netguard.Guard           // nil: the public internet and nothing else
	Log      *slog.Logger
}

// Proxies has a proxy for each sandbox that is open. It is safe for concurrent use.
type Proxies struct {
	options Options
	guard   *netguard.Guard
	log     *slog.Logger
	tool    *toolward.Tool
	spent   spending
	inner   innerHosts
	remotes remotes

	mu     sync.Mutex
	ways   map[string]*way // by the name of the sandbox
	uses   map[string]*users
	stays  map[string]bool    // sandboxes that go on without a gateway: they have the directory mounted
	asking map[string]*flight // by the id of its calls
	closed bool
}

var _ fleet.Egress = (*Proxies)(nil)

// way is the proxy of one sandbox.
type way struct {
	dir     string
	end     context.CancelFunc
	ended   chan struct{} // closed when the last connection is over
	mu      sync.Mutex
	flights map[wish]*flight // that were not decided yet
	answers map[target]*answer
}

// SocketName is the socket in the directory that is mounted.
const SocketName = "egress.sock"

// New makes proxies. What an earlier run left is removed by [Proxies.Outlived]: until then it is not known who needs it.
func New(o Options) (*Proxies, error) {
	if o.Dir == "" || o.Gate == nil || o.Levels == nil || o.Settings == nil || o.Own == nil {
		return nil, errors.New("egress: a part is missing")
	}
	p := &Proxies{options: o, guard: o.Guard, log: o.Log, ways: map[string]*way{}, uses: map[string]*users{}, asking: map[string]*flight{}}
	p.remotes.path = o.Remotes
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if p.guard == nil {
		policy, err := netguard.NewPolicy(netguard.Config{})
		if err != nil {
			return nil, err
		}
		p.guard = netguard.NewGuard(policy, nil)
	}
	p.tool = p.newTool()
	return p, nil
}

// Open has a proxy listen for the sandbox of a name, and returns the directory to mount inside.
func (p *Proxies) Open(name string) (dir string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return "", errors.New("the gateway is ending")
	}
	if w := p.ways[name]; w != nil {
		return w.dir, nil
	}
	if !isName(name) {
		return "", fmt.Errorf("%q is no name of a sandbox", name)
	}
	w := &way{dir: filepath.Join(p.options.Dir, name), ended: make(chan struct{}), flights: map[wish]*flight{}, answers: map[target]*answer{}}
	listener, err := listen(p.options.Dir, w.dir)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.end = cancel
	p.ways[name] = w
	proxy := &netguard.Proxy{
		Guard: p.guard,
		Permit: func(ctx context.Context, host string, port uint16) (netguard.Leave, error) {
			return p.permit(ctx, name, w, target{host, port})
		},
		Known:   func(host string, port uint16) bool { return p.known(name, target{host, port}) },
		Refused: func(host string, port uint16, why *netguard.Error) { p.refused(ctx, name, host, port, why) },
	}
	go func() {
		defer close(w.ended)
		if err := proxy.Serve(ctx, listener); err != nil {
			p.log.Error("the proxy of a sandbox ended", "sandbox", name, "err", err)
		}
	}()
	return w.dir, nil
}

// isName reports whether a name is that of one directory below our own.
func isName(name string) bool {
	return name != "" && name == filepath.Base(name) && name[0] != '.'
}

// listen makes the socket of one sandbox. Only the gateway's user gets into the directory above; the sandbox has this one
// directory mounted, whatever user it runs as. So nobody else reaches the socket, and no sandbox that of another.
func listen(above, dir string) (_ net.Listener, err error) {
	if err := os.MkdirAll(above, 0o700); err != nil {
		return nil, err
	}
	// A directory that is there already may be mounted in a sandbox that has outlived its gateway: another one of the name
	// would lead nowhere. Only the gateway's user can have made it.
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := errors.Join(os.Chmod(above, 0o700), emptied(dir), os.Chmod(dir, 0o711)); err != nil {
		return nil, err
	}
	at, name := (*os.File)(nil), filepath.Join(dir, SocketName)
	if runtime.GOOS == "linux" {
		// Through the descriptor: names of sockets are short, and homes may be long.
		if at, err = os.Open(dir); err != nil {
			return nil, err
		}
		defer at.Close()
		name = "/proc/self/fd/" + strconv.Itoa(int(at.Fd())) + "/" + SocketName
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	listener.SetUnlinkOnClose(false) // by that name it would be another's
	if err := os.Chmod(name, 0o666); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// emptied removes what is in a directory.
func emptied(dir string) error {
	entries, err := os.ReadDir(dir)
	failed := []error{err}
	for _, e := range entries {
		failed = append(failed, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(failed...)
}

// Outlived removes the directories of all sandboxes that are neither open nor named, and the sockets of those that are named
// and not open. Sessions that have used one count as they did for the gateway before.
func (p *Proxies) Outlived(sessions map[string][]fleet.Former) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stays = map[string]bool{}
	for name, former := range sessions {
		p.stays[name] = true
		p.recall(name, former)
	}
	entries, err := os.ReadDir(p.options.Dir)
	if err != nil {
		return // none yet
	}
	for _, e := range entries {
		dir := filepath.Join(p.options.Dir, e.Name())
		switch {
		case p.ways[e.Name()] != nil:
			continue
		case p.stays[e.Name()]:
			err = emptied(dir)
		default:
			err = os.RemoveAll(dir)
		}
		if err != nil {
			p.log.Warn("the socket of a sandbox of an earlier run could not be removed", "sandbox", e.Name(), "err", err)
		}
	}
}

// Close ends the proxy of a sandbox with all its connections, and takes its socket away. What used the sandbox is forgotten:
// nothing of it runs any more.
func (p *Proxies) Close(name string) {
	p.mu.Lock()
	delete(p.stays, name)
	if all := p.uses[name]; all != nil {
		all.release()
	}
	p.mu.Unlock()
	p.end(name, false)
}

// end ends the proxy of a sandbox. The directory of one that goes on stays.
func (p *Proxies) end(name string, stays bool) {
	p.mu.Lock()
	w := p.ways[name]
	delete(p.ways, name)
	p.forget(name)
	p.mu.Unlock()
	if w != nil {
		w.end()
		<-w.ended
		w.over(func(*Use) bool { return true })
	}
	if !isName(name) {
		return
	}
	remove := os.RemoveAll
	if stays {
		remove = emptied
	}
	if err := remove(filepath.Join(p.options.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("the socket of a sandbox could not be removed", "sandbox", name, "err", err)
	}
}

// Shutdown closes all.
func (p *Proxies) Shutdown() {
	p.mu.Lock()
	p.closed = true
	var names []string
	for name := range p.ways {
		names = append(names, name)
	}
	stays := maps.Clone(p.stays)
	p.mu.Unlock()
	for _, name := range names {
		p.end(name, stays[name])
	}
}

// Tool is the internal tool that the calls are of. The policy must be compiled with it.
func (p *Proxies) Tool() *toolward.Tool { return p.tool }
