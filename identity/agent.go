package identity

import (
	"errors"
	"sync"
)

// agents is the processes that are known to be agents, because they started a hook or an MCP client of ours.
type agents struct {
	mu     sync.Mutex
	known  map[int]uint64  // process id to start time
	turned map[uint64]bool // terminals of agents that there was no room for
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
//
// With an error there is no room for it, and nothing may be done for it: the newcomer is turned away, and nobody answers from the
// terminal that it runs in. Taking every terminal for an agent's would let whoever fills the list keep the person from answering.
func (k *Keeper) RegisterAgent(peer Process) error {
	p := peer
	for range agentDepth {
		parent, err := parentOf(k.processes, p)
		if err != nil || parent.UID != peer.UID || parent.isInteractiveShell() {
			return nil
		}
		if !k.agents.add(k.processes, parent) {
			return errManyAgents
		}
		if !parent.onlyRuns() {
			return nil
		}
		p = parent
	}
	return nil
}

var errManyAgents = errors.New("too many agents run on this machine: end some that are not needed")

// onlyRuns reports whether a process stands between an agent and what it starts: a shell with a command, or a
// runner.
func (p Process) onlyRuns() bool {
	switch p.program() {
	case "sh", "bash", "zsh", "dash", "fish", "ash", "busybox", "env", "timeout", "nice", "npx", "uvx":
		return true
	}
	return p.isGoRun()
}

// add notes a process; false if there is no room among those that live.
func (a *agents) add(list Processes, p Process) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[int]uint64{}
	}
	if len(a.known) >= maxAgents && a.known[p.PID] == 0 {
		for pid, start := range a.known {
			if now, err := list.Process(pid); err != nil || now.Start != start {
				delete(a.known, pid)
			}
		}
		if len(a.known) >= maxAgents {
			if a.turned == nil {
				a.turned = map[uint64]bool{}
			}
			a.turned[p.TTY] = true
			return false
		}
		clear(a.turned)
	}
	a.known[p.PID] = p.Start
	return true
}

// has reports whether a process is known as an agent, or runs where one does that there was no room for.
func (a *agents) has(p Process) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return p.Start != 0 && a.known[p.PID] == p.Start || p.TTY != 0 && a.turned[p.TTY]
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
