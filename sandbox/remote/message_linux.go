package remote

import (
	"os"
	"slices"
	"syscall"

	"github.com/toolward/toolward/sandbox"
)

// The calls. Those of an engine name it; those of a sandbox, and of a process in it, have its number in this session.
const (
	callBegin   = "begin"
	callProbe   = "probe"
	callSweep   = "sweep"
	callEnsure  = "ensure"
	callLookup  = "lookup"
	callList    = "list"
	callStop    = "stop"
	callRemove  = "remove"
	callClose   = "close"
	callStart   = "start"
	callSignal  = "signal"
	callResize  = "resize"
	callStat    = "stat"
	callLstat   = "lstat"
	callRead    = "read file"
	callWrite   = "write file"
	callMkdir   = "make directory"
	callErase   = "remove file"
	callRename  = "rename"
	callEntries = "list directory"
	callPorts   = "ports"
	callConnect = "connect"
	callStats   = "stats"
	callDone    = "wait for the end"
	callLetGo   = "let go"
)

// Terms are what the engines must know of the gateway that uses them.
type Terms struct {
	Instance string // of the Toolward home
	Cgroup   string // delegated to the person's process; "" is its own
}

type (
	// begun is the answer to callBegin.
	begun struct{ Session []byte }
	// ofEngine names what an engine has.
	ofEngine struct{ Engine, Name string }
	// plan is a Spec on its way: the mounts that are pinned come as files, in this order.
	plan struct {
		Engine string
		Spec   sandbox.Spec
		Pinned []int
	}
	made struct {
		Box   uint64
		State sandbox.State
	}
	ofBox  struct{ Box uint64 }
	atPath struct {
		Box  uint64
		Path string
	}
	reading struct {
		Box           uint64
		Path          string
		Offset, Limit int64
	}
	content struct {
		Data []byte
		Info sandbox.FileInfo
	}
	writing struct {
		Box     uint64
		Path    string
		Data    []byte
		Options sandbox.WriteOptions
	}
	erasing struct {
		Box     uint64
		Path    string
		Options sandbox.RemoveOptions
	}
	renaming struct {
		Box      uint64
		From, To string
	}
	listing struct {
		Box     uint64
		Path    string
		Options sandbox.ListOptions
	}
	entries struct {
		Entries []sandbox.Entry
		More    bool
	}
	ports struct {
		Ports []sandbox.Port
		More  bool
	}
	connecting struct {
		Box  uint64
		Port uint16
	}
	starting struct {
		Box     uint64
		Command sandbox.Command
	}
	// started comes with its files: standard output, standard error, and standard input if it has one.
	started struct {
		Process uint64
		PID     int
		Stdin   bool
	}
	signaling struct {
		Process uint64
		Signal  syscall.Signal
	}
	resizing struct {
		Process uint64
		Size    sandbox.Size
	}
	nothing struct{}
)

// planOf takes the files out of a Spec.
func planOf(engine string, spec *sandbox.Spec) (p plan, files []*os.File) {
	p = plan{Engine: engine, Spec: *spec}
	p.Spec.Mounts = slices.Clone(spec.Mounts)
	for i := range p.Spec.Mounts {
		if pinned := p.Spec.Mounts[i].Pinned; pinned != nil {
			p.Pinned, files = append(p.Pinned, i), append(files, pinned)
			p.Spec.Mounts[i].Pinned = nil
		}
	}
	return p, files
}

// spec puts the files back, each where it was.
func (p *plan) spec(files []*os.File) (*sandbox.Spec, error) {
	if len(files) != len(p.Pinned) {
		return nil, sandbox.Errorf(sandbox.CodeConfig, "%d mounts were pinned, and %d came", len(p.Pinned), len(files))
	}
	for i, at := range p.Pinned {
		if at < 0 || at >= len(p.Spec.Mounts) || p.Spec.Mounts[at].Pinned != nil {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "a mount is pinned that is none, or twice")
		}
		p.Spec.Mounts[at].Pinned = files[i]
	}
	return &p.Spec, nil
}
