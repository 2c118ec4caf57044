package place

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
)

// Kind is what stands at a path.
type Kind uint8

// The kinds. The zero value is unknown and nothing may be opened by it.
const (
	KindUnknown Kind = iota
	KindMissing
	KindRegular
	KindDirectory
	KindSymlink // only from ResolveEntry: the entry itself is a link
	KindDevice
	KindFIFO
	KindSocket
	KindOther // anything else, also a door into another process such as /proc/1/root
)

var kinds = [...]string{"unknown", "missing", "regular file", "directory", "symbolic link", "device", "FIFO", "socket", "special file"}

// String is for people: "regular file", "FIFO", …
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return kinds[KindUnknown]
}

// Special reports whether reading or writing could block, reach a device or another program: validation
// refuses such a target (finding path_link).
func (k Kind) Special() bool { return k >= KindDevice || k == KindUnknown }

// Resolved is the one meaning of a path at one moment.
type Resolved struct {
	Asked   string // the path as the call gave it
	Real    string // absolute, no symbolic link in it; for a missing target the real ancestor and the rest
	Zone    Zone   // of Real
	Kind    Kind   // what is there
	Links   uint64 // hard links of an existing target; more than 1: other names show the same content
	ViaLink bool   // a symbolic link was followed on the way
	LedOut  bool   // a symbolic link led from the workspace to somewhere else
	Device  uint64 // with Inode: which file it is, to notice that it was exchanged
	Inode   uint64
}

// SameTarget reports whether a later resolution of the same path still means what was judged: the same real
// path, of the same kind, in the same place. A file that was replaced by another one at the same path is the
// same target; a moved link is not.
func (r Resolved) SameTarget(later Resolved) bool {
	return r.Real == later.Real && r.Zone == later.Zone && r.Kind == later.Kind && r.LedOut == later.LedOut
}

// Errors that callers branch on. All others are failures of the system.
var (
	ErrBadPath   = errors.New("not a usable path")                        // empty, NUL, control characters, too long
	ErrDisguised = errors.New("another spelling of a guarded name")       // ".git ", "GIT~1", ".git::$INDEX_ALLOCATION"
	ErrChanged   = errors.New("the target changed since it was resolved") // something was swapped in between
	ErrNotFile   = errors.New("not a regular file")
	ErrLinked    = errors.New("the file has other names (hard links)")
	ErrTooLarge  = errors.New("the file is larger than the limit")
)

const (
	maxPath  = 4096 // bytes, Linux PATH_MAX
	maxName  = 255
	maxLinks = 40 // as Linux
)

// Resolve finds the real path that a call's path means: "~" is the home directory, a relative path starts at
// workDir (absolute and real), every symbolic link is followed, also a dangling one, and where the target does
// not exist the rest is appended to the real path of its nearest existing ancestor. ".." is taken after links
// are followed, as the kernel does.
func (c *Classifier) Resolve(workDir, asked string) (Resolved, error) {
	return c.resolve(workDir, asked, true, nil)
}

// ResolveEntry is Resolve for operations on the directory entry itself (remove, rename): a symbolic link
// as the last element is not followed.
func (c *Classifier) ResolveEntry(workDir, asked string) (Resolved, error) {
	return c.resolve(workDir, asked, false, nil)
}

func (c *Classifier) resolve(workDir, asked string, follow bool, g *Glance) (Resolved, error) {
	p, err := c.absolute(workDir, asked)
	if err != nil {
		return Resolved{}, err
	}
	if err := c.checkElements(asked, p); err != nil {
		return Resolved{}, err
	}
	w := walk{c: c, asked: asked, follow: follow}
	var r Resolved
	ok := false
	if c.view == nil {
		r, ok = g.look(p)
	}
	if !ok {
		if r, err = w.run(p); err != nil {
			return Resolved{}, err
		}
		// A link's text can hold what the call's own path may not.
		if r.ViaLink {
			if err := c.checkElements(asked, r.Real); err != nil {
				return Resolved{}, err
			}
		}
	}
	r.Asked = asked
	r.Zone = c.Classify(r.Real)
	r.LedOut = w.wasInside && !c.inWorkspace(r.Real)
	return r, nil
}

// absolute joins and checks the text of a path. The result may still contain "..", which only the walk may
// remove.
func (c *Classifier) absolute(workDir, asked string) (string, error) {
	switch {
	case asked == "":
		return "", fmt.Errorf("the path is empty: %w", ErrBadPath)
	case len(asked) > maxPath:
		return "", fmt.Errorf("the path is %d bytes long, more than %d: %w", len(asked), maxPath, ErrBadPath)
	}
	for i := 0; i < len(asked); i++ {
		// NUL ends a path for the kernel but not for a comparison; a line break forges lines in what people
		// are shown.
		if b := asked[i]; b < 0x20 || b == 0x7f {
			return "", fmt.Errorf("the path %q contains the control character %q: %w", clip(asked), rune(b), ErrBadPath)
		}
	}
	p := asked
	switch {
	case p == "~":
		p = c.layout.Home
	case strings.HasPrefix(p, "~/"):
		p = c.layout.Home + p[1:]
	case p[0] != '/':
		if !path.IsAbs(workDir) {
			return "", fmt.Errorf("the working directory %q is not absolute: %w", workDir, ErrBadPath)
		}
		p = workDir + "/" + p
	}
	if len(p) > maxPath {
		return "", fmt.Errorf("the path is %d bytes long, more than %d: %w", len(p), maxPath, ErrBadPath)
	}
	return p, nil
}

func (c *Classifier) checkElements(asked, p string) error {
	for rest := p; rest != ""; {
		element, after, _ := strings.Cut(rest, "/")
		if len(element) > maxName {
			return fmt.Errorf("a name in %q is longer than %d bytes: %w", clip(asked), maxName, ErrBadPath)
		}
		if looksDisguised(element) {
			if name := c.plain(element); name != "" {
				return fmt.Errorf("%q in the path is %w (%s): use that name", element, ErrDisguised, name)
			}
		}
		rest = after
	}
	return nil
}

func (c *Classifier) inWorkspace(real string) bool {
	return Within(c.key(real), c.workspace)
}

// walk follows a path element by element. It is the portable way, and the only one for paths with links,
// with "..", or with missing parts.
type walk struct {
	c         *Classifier
	asked     string
	follow    bool // also the last element
	wasInside bool // the walk was in the workspace when it met a link
}

func (w *walk) run(p string) (Resolved, error) {
	var (
		real    = "/" // what has been walked: real, without a trailing slash except for the root
		rest    = strings.TrimLeft(p, "/")
		missing bool // real does not exist: the rest is text
		last    = Resolved{Kind: KindDirectory}
		links   int
	)
	for rest != "" {
		element, after, more := strings.Cut(rest, "/")
		rest = strings.TrimLeft(after, "/")
		switch element {
		case "", ".":
			continue
		case "..":
			real, missing = path.Dir(real), missing && !w.c.exists(path.Dir(real))
			last.Kind = KindUnknown // looked at again below, when it is the end
			continue
		}
		next := strings.TrimSuffix(real, "/") + "/" + element
		if missing {
			real = next
			continue
		}
		info, err := w.c.lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			real, missing, last = next, true, Resolved{Kind: KindMissing, ViaLink: last.ViaLink}
			continue
		case errors.Is(err, syscall.ENOTDIR):
			return Resolved{}, fmt.Errorf("%s is not a directory, so %q cannot exist: %w", real, clip(w.asked), ErrBadPath)
		case err != nil:
			return Resolved{}, fmt.Errorf("cannot look at %s: %w", next, err)
		}
		found := describe(info)
		if found.Kind == KindSymlink && (w.follow || more) {
			if isMagicLink(next) {
				// /proc/<pid>/root, cwd, exe, fd/N lead into another process's view whatever their text says:
				// never followed, so that they keep their own place and cannot be opened.
				real, last = next, Resolved{Kind: KindOther, Links: 1, ViaLink: last.ViaLink}
				if !strings.Contains(rest, "..") {
					real = path.Join(next, rest)
				}
				break
			}
			if links++; links > maxLinks {
				return Resolved{}, fmt.Errorf("%q has more than %d symbolic links in it: %w", clip(w.asked), maxLinks, ErrBadPath)
			}
			target, err := w.c.readlink(next)
			if err != nil {
				return Resolved{}, fmt.Errorf("read the symbolic link %s: %w", next, err)
			}
			w.wasInside = w.wasInside || w.c.inWorkspace(next)
			if rest, err = splice(target, rest, more); err != nil {
				return Resolved{}, fmt.Errorf("the symbolic link %s: %w", next, err)
			}
			if strings.HasPrefix(target, "/") {
				real = "/"
			}
			last = Resolved{Kind: KindUnknown, ViaLink: true}
			continue
		}
		found.ViaLink = last.ViaLink
		real, last = next, found
		if more && found.Kind != KindDirectory {
			return Resolved{}, fmt.Errorf("%s is a %s, not a directory: %w", real, found.Kind, ErrBadPath)
		}
	}
	if len(real) > maxPath {
		return Resolved{}, fmt.Errorf("%q leads to a path longer than %d bytes: %w", clip(w.asked), maxPath, ErrBadPath)
	}
	switch {
	case last.Kind == KindUnknown && !missing:
		via := last.ViaLink
		info, err := w.c.lstat(real)
		if err != nil {
			return Resolved{}, fmt.Errorf("cannot look at %s: %w", real, err)
		}
		last = describe(info)
		last.ViaLink = via
	case missing:
		last = Resolved{Kind: KindMissing, ViaLink: last.ViaLink}
	}
	last.Real = real
	return last, nil
}

// splice puts a link's text in front of what is left of the path.
func splice(target, rest string, more bool) (string, error) {
	switch {
	case target == "":
		return "", fmt.Errorf("is empty: %w", ErrBadPath)
	case len(target)+len(rest) > 4*maxPath:
		return "", fmt.Errorf("makes the path too long: %w", ErrBadPath)
	case more:
		return strings.TrimLeft(target, "/") + "/" + rest, nil
	}
	return strings.TrimLeft(target, "/"), nil
}

// isMagicLink knows the links of /proc/<pid> that the kernel resolves by object instead of by text.
// /proc/self and /proc/thread-self themselves are ordinary links.
func isMagicLink(real string) bool {
	rest, ok := strings.CutPrefix(real, "/proc/")
	if !ok {
		return false
	}
	pid, _, deeper := strings.Cut(rest, "/")
	return deeper && isProcess(pid)
}

func describe(info fs.FileInfo) Resolved {
	r := Resolved{Kind: kindOf(info.Mode()), Links: 1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		r.Links, r.Device, r.Inode = uint64(st.Nlink), uint64(st.Dev), st.Ino // widths differ between systems
	}
	return r
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return KindRegular
	case mode.IsDir():
		return KindDirectory
	case mode&fs.ModeSymlink != 0:
		return KindSymlink
	case mode&fs.ModeDevice != 0:
		return KindDevice
	case mode&fs.ModeNamedPipe != 0:
		return KindFIFO
	case mode&fs.ModeSocket != 0:
		return KindSocket
	}
	return KindOther
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
