package rule

import (
	"sync"

	"cel.dev/cel-go/cel"
	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

// Call is what conditions see of one call. Values are made when a condition first asks for them, and shared by all
// conditions that look at the call. It is not safe for concurrent use.
type Call struct {
	request *toolward.Request
	action  string
	level   toolward.Level
	small   bool   // so small that what was computed when the conditions were compiled bounds their cost
	spent   uint64 // cost of the conditions so far, if it is not small
	params  params
	// Kept for the conditions that follow.
	realPaths []string
	read      readAddress
	values    []any // of variables, by position; nil: not asked for yet
}

var _ cel.Activation = (*Call)(nil)

var calls = sync.Pool{New: func() any { return &Call{values: make([]any, len(variables))} }}

// Look makes a call visible to conditions. action is the call's action in lower case, letters and digits only.
func Look(r *toolward.Request, action string, level toolward.Level) *Call {
	c := calls.Get().(*Call)
	c.request, c.action, c.level = r, action, level
	c.small = isSmall(r)
	c.params.call = c
	return c
}

// At shows the call at another level from now on.
func (c *Call) At(level toolward.Level) {
	c.level = level
	c.values[positions["level"]] = nil
}

// Release forgets the call. Nothing that was read from it may be used any more.
func (c *Call) Release() {
	clear(c.values)
	clear(c.realPaths)
	clear(c.params.found)
	*c = Call{values: c.values, realPaths: c.realPaths[:0], params: params{found: c.params.found[:0]}}
	calls.Put(c)
}

// smallCall bounds a small call: its canonical parameters, and all texts of its facts and caller, in bytes. Calls of
// agents are rarely larger, but for what they write into files.
const smallCall = 4096

// smallList bounds the number of elements of each list among the facts of a small call.
const smallList = 256

// isSmall reports whether the bounds that conditions were compiled for hold for a call.
func isSmall(r *toolward.Request) bool {
	f, caller := &r.Facts, &r.Call.Caller
	if r.Params.Len() > smallCall || len(f.Targets) > smallList {
		return false
	}
	size := len(f.Action) + len(f.TargetID) + len(f.Command) + len(f.Scope) + len(f.BrowserOn) + len(caller.Agent) +
		len(caller.Context) + len(caller.Channel) + len(caller.Account) + len(caller.Sender) + len(caller.Group) +
		len(caller.Provider) + len(caller.Model) + len(caller.Workspace) + len(r.Call.Session) + len(r.Call.WorkDir) +
		len(r.Call.Host) + len(r.Call.Surface) + len(r.Tool.Name)
	for i := range f.Targets {
		size += len(f.Targets[i].Path) + len(f.Targets[i].Real)
	}
	for _, list := range [...][]string{f.Hosts, f.URLs, f.Recipients, f.Outbound} {
		if len(list) > smallList {
			return false
		}
		for _, s := range list {
			size += len(s)
		}
	}
	return size <= smallCall
}

// ResolveName gives a variable to the evaluation of a condition.
func (c *Call) ResolveName(name string) (any, bool) {
	if name == paramsName {
		return &c.params, true
	}
	if name == callName {
		return c, true
	}
	i, ok := positions[name]
	if !ok {
		return nil, false
	}
	if c.values[i] == nil {
		c.values[i] = variables[i].value(c)
	}
	return c.values[i], true
}

// callName gives the call itself to hostIn. No expression can contain it.
const callName = "\x00call"

// Parent is nil: there is nothing beyond the call.
func (c *Call) Parent() cel.Activation { return nil }

func (c *Call) targets() any {
	list := make([]Target, len(c.request.Facts.Targets))
	for i := range list {
		t := &c.request.Facts.Targets[i]
		list[i] = Target{Path: t.Path, Real: t.Real, Op: string(t.Op), Place: string(t.Zone), Kind: string(t.Kind), Links: int64(t.Links), Left: t.Left}
	}
	return list
}

func (c *Call) paths() []string {
	if len(c.realPaths) == 0 {
		for i := range c.request.Facts.Targets {
			c.realPaths = append(c.realPaths, c.request.Facts.Targets[i].Real)
		}
	}
	return c.realPaths
}

// address reads a URL or a host, and remembers the last one: many conditions look at the same.
func (c *Call) address(text string) (address, error) {
	if c.read.text != text || text == "" {
		a, err := addressOf(text)
		c.read = readAddress{text, a, err}
	}
	return c.read.address, c.read.err
}

type readAddress struct {
	text    string
	address address
	err     error
}

// strictestPlace is the place that decides when a call has several targets; "" if there is none, or one whose place
// is not known.
func (c *Call) strictestPlace() string {
	if len(c.request.Facts.Targets) == 0 {
		return ""
	}
	strictest := place.Workspace
	for i := range c.request.Facts.Targets {
		p, err := place.Parse(string(c.request.Facts.Targets[i].Zone))
		if err != nil {
			return ""
		}
		strictest = min(strictest, p)
	}
	return strictest.String()
}
