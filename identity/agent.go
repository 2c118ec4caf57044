package identity

import (
	"errors"
	"sync"
)

// agents is the processes that are known to be agents, because they started a hook or an MCP client of ours.
type agents struct {
	mu    sync.Mutex
	known map[int]uint64 // process id to start time
	over  bool           // there was one too many, so a process that is not known may be an agent all the same
}

const (
	maxAgents  = 4096
	agentDepth = 6 // shells and runners that are looked through
)

// RegisterAgent notes that the process at the other end of a connection was started by an agent: it is a hook, or
// an MCP client. The agent is the process that started it; shells that only ran the command, and "go run", are
// noted with it. From then on nothing that descends from it can use a terminal's sign-in.
//
// A person who starts a hook by hand, from a shell they type into, does not make an agent of that shell.
func (k *Keeper) RegisterAgent(peer Process) {
	p := peer
	for range agentDepth {
		parent, err := parentOf(k.processes, p)
		if err != nil || parent.UID != peer.UID || parent.isInteractiveShell() {
			return
		}
		k.agents.add(k.processes, parent)
		if !parent.onlyRuns() {
			return
		}
		p = parent
	}
}

// onlyRuns reports whether a process stands between an agent and what it starts: a shell with a command, or a
// runner.
func (p Process) onlyRuns() bool {
	switch p.program() {
	case "sh", "bash", "zsh", "dash", "fish", "ash", "busybox", "env", "timeout", "nice", "npx", "uvx":
		return true
	}
	return p.isGoRun()
}

func (a *agents) add(list Processes, p Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[int]uint64{}
	}
	if len(a.known) >= maxAgents {
		for pid, start := range a.known {
			if now, err := list.Process(pid); err != nil || now.Start != start {
				delete(a.known, pid)
			}
		}
	}
	if a.over = len(a.known) >= maxAgents && a.known[p.PID] == 0; !a.over {
		a.known[p.PID] = p.Start
	}
}

// has reports whether a process is known as an agent, or may be one that there was no room for: filling the list must
// not hide an agent.
func (a *agents) has(p Process) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over || p.Start != 0 && a.known[p.PID] == p.Start
}

// errAgent stops an agent from answering its own questions out of a terminal that its user signed in.
var errAgent = errors.New("this process belongs to an agent; a person answers from a shell of their own or in the console")

// descendsFromAgent reports whether p or one of its ancestors is a registered agent, or cannot be told.
func (k *Keeper) descendsFromAgent(p Process) bool {
	for range maxAncestors {
		if k.agents.has(p) {
			return true
		}
		if p.Parent <= 1 {
			return false
		}
		parent, err := parentOf(k.processes, p)
		if err != nil {
			return true // in doubt it does
		}
		p = parent
	}
	return true
}
