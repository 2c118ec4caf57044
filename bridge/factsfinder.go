package bridge

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/netguard"
	"github.com/toolward/toolward/place"
)

// factsFinder finds out what the calls of one workspace would touch, without touching it.
type factsFinder struct {
	places    *place.Classifier
	home      string // the person's home
	project   string // the workspace as the client names it
	workspace string // the same without symbolic links
	config    string // the client's own configuration directory
	managed   string // the administrator's settings of the client
	commands  commandFacts
	enforces  bool // what runs without a question is rewritten to what was judged
	confined  func(toolward.Caller) bool
	byTicket  func(*toolward.Request) (yes, moves bool)
}

// hidden reports whether a command runs under another text, so that the client does not see what it is.
func (l *factsFinder) hidden(r *toolward.Request, facts *toolward.Facts) bool {
	if l.byTicket == nil {
		return false
	}
	judged := *r
	judged.Facts = *facts
	yes, _ := l.byTicket(&judged)
	return yes
}

// confines reports whether Toolward confines the commands of a session where nothing else is said.
func (l *factsFinder) confines(c toolward.Caller, session toolward.SessionKey) bool {
	if l.confined == nil {
		return false
	}
	c.Session, c.Surface = session, toolward.SurfaceHook
	return l.confined(c)
}

// commandFacts finds out what a command would do that the client's shell is to run. Only commands of POSIX shells
// are given to it: in another shell's language the same text means something else.
type commandFacts func(ctx context.Context, r *toolward.Request, command string, machine bool) (toolward.Facts, error)

// factsFinders keeps the factsFinders of the workspaces in use.
type factsFinders struct {
	client   *client
	layout   place.Layout // without workspace
	agent    string
	shared   func(toolward.Caller) (*place.Classifier, error)
	commands commandFacts
	enforces bool
	confined func(toolward.Caller) bool
	byTicket func(*toolward.Request) (yes, moves bool)

	mu    sync.Mutex
	known map[string]*factsFinder
}

// maxWorkspaces bounds the cache; it is emptied when it is full.
const maxWorkspaces = 256

// of gives the factsFinder of a workspace.
func (l *factsFinders) of(workspace string) (*factsFinder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[workspace]; known != nil {
		return l.fresh(known)
	}
	layout := l.layout
	layout.Workspace = workspace
	canonical, err := layout.Canonical()
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", workspace, err)
	}
	real := canonical.Workspace
	places, err := l.places(canonical)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", workspace, err)
	}
	if l.known == nil || len(l.known) >= maxWorkspaces {
		l.known = map[string]*factsFinder{}
	}
	made := &factsFinder{
		places: places, home: canonical.Home, project: workspace, workspace: real,
		config: filepath.Join(l.layout.Home, l.client.directory), managed: l.client.managed(),
		commands: l.commands, enforces: l.enforces, confined: l.confined, byTicket: l.byTicket,
	}
	l.known[workspace] = made
	return made, nil
}

// places are those of the gateway if it shares them: then files that a tool of the client opens and files that a command
// names are in the same places.
func (l *factsFinders) places(canonical place.Layout) (*place.Classifier, error) {
	if l.shared == nil {
		return place.New(canonical.Narrowed())
	}
	return l.shared(toolward.Caller{Agent: l.agent, Workspace: canonical.Workspace})
}

// fresh is a known factsFinder with the places of this moment: a changed configuration may have made files Toolward's own.
// The caller holds the lock.
func (l *factsFinders) fresh(known *factsFinder) (*factsFinder, error) {
	if l.shared == nil {
		return known, nil
	}
	places, err := l.shared(toolward.Caller{Agent: l.agent, Workspace: known.workspace})
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", known.project, err)
	}
	if places == known.places {
		return known, nil
	}
	made := *known
	made.places = places
	l.known[known.project] = &made
	return &made, nil
}

// public lets everything public through. It is the zero configuration, of which nothing can be wrong.
var public, _ = netguard.NewPolicy(netguard.Config{})

// addAddress adds an address that the client itself would fetch. The client's own check of where it leads is not ours to know: without
// a question an agent could read the machine's services, this gateway among them, and a cloud's metadata, where credentials lie.
// What a public name resolves to is seen only by the client.
func addAddress(facts *toolward.Facts, address string) {
	facts.URLs = append(facts.URLs, address)
	if host := hostOf(address); host != "" {
		facts.Hosts = append(facts.Hosts, host)
	}
	if why := public.Refuses(address); why != "" {
		facts.Findings = append(facts.Findings, toolward.Finding{
			Code: "ssrf", Effect: toolward.EffectAsk, Detail: "the address does not lead to the public internet for certain: " + why,
		})
	}
}

// hostOf is "scheme://host:port" of an address, "" if it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443"}[strings.ToLower(u.Scheme)]
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return strings.ToLower(u.Scheme) + "://" + host + ":" + port
}

// lookIntoTree adds what a search through a directory would read that is stricter than the directory itself. A
// search from the home directory or from / reads private keys on its way; without this it would be judged by the
// place of the directory alone.
func lookIntoTree(l *factsFinder, r *toolward.Request, facts *toolward.Facts) {
	if len(facts.Targets) != 1 || facts.Targets[0].Kind != toolward.KindDirectory {
		return
	}
	root := facts.Targets[0]
	p, err := place.Parse(string(root.Zone))
	if err != nil || p < place.Protected {
		return // the directory itself is judged as strictly
	}
	if p != place.Workspace {
		for _, dir := range []string{root.Real, l.home, l.places.Layout().StateDir, "/etc", "/proc/1"} {
			if place.Within(dir, root.Real) {
				l.addStrict(facts, root, dir)
			}
		}
	}
	if facts.Action == "grep" {
		l.addSecretFiles(facts, r, root)
	}
}

// addStrict adds the strictest of a directory and its entries as a further target.
func (l *factsFinder) addStrict(facts *toolward.Facts, root toolward.Target, dir string) {
	worst, where := l.places.Classify(dir), dir
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be listed cannot be searched by the same account either
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if p := l.places.Classify(path); p < worst {
			worst, where = p, path
		}
	}
	known := slices.ContainsFunc(facts.Targets, func(t toolward.Target) bool { return t.Real == where })
	if worst < place.Outside && !known {
		facts.Targets = append(facts.Targets, toolward.Target{
			Path: root.Path, Real: where, Op: root.Op, Zone: worst.Word(), Kind: toolward.KindDirectory, Links: 1,
		})
	}
}
