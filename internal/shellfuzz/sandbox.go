//go:build linux

package shellfuzz

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed trace/trace.c
var traceSource []byte

// Sizes in shared memory; they are those of trace.c.
const (
	sharedSize = 1 << 20
	headerSize = 8 * 4
	textSize   = 1 << 17
	maxCommand = 60 << 10
)

// starters are the programs that run for real: all that they do is start others.
var starters = []string{"bash", "sh", "dash", "env", "nice", "nohup", "stdbuf", "timeout", "xargs", "find"}

// stdbufLibrary is what stdbuf loads into what it starts.
const stdbufLibrary = "/usr/libexec/coreutils/libstdbuf.so"

// Bash is a real bash in a sandbox of its own, where no program ever starts: name spaces without network and other
// processes, and a root directory that is thrown away.
type Bash struct {
	Root string // of the sandbox, as seen from outside
	as   string // "": bash; one of [Others]: see [NewOther]

	// Enforced: it gets the text that was judged in the place of the one that was sent.
	Enforced bool

	process         *exec.Cmd
	request, answer *os.File
	out             *os.File // standard output
	shared          []byte
	base            [3]file // what the standard streams are
	null            file
	fixture         fixture
	analyst         *analyst
	executor        *executor     // started when it is needed
	patience        time.Duration // how long a command may take; on a busy machine one that ends takes seconds
	realRoot        string        // Root without links
	runs            int
	attempts        int // commands that bash ran
	executeEvery    int // how many of them until our executor runs one, too
}

// ErrNoSandbox means that this machine has not what a sandbox needs; nothing is run without one.
var ErrNoSandbox = errors.New("no sandbox")

// NewBash builds a sandbox in dir, which must be empty, and starts a bash in it.
func NewBash(dir string) (*Bash, error) {
	return newShell(&Bash{Root: dir, patience: 10 * time.Second, executeEvery: 1})
}

func newShell(b *Bash) (*Bash, error) {
	if err := b.build(); err != nil {
		return nil, err
	}
	memory, err := unix.MemfdCreate("trace", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	trace := os.NewFile(uintptr(memory), "trace")
	defer trace.Close()
	if err := trace.Truncate(sharedSize); err != nil {
		return nil, err
	}
	if b.shared, err = unix.Mmap(memory, 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, err
	}
	count := b.command(":", "count", trace, nil, nil)
	if out, err := count.CombinedOutput(); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			return nil, fmt.Errorf("%w: %w", ErrNoSandbox, err)
		}
		return nil, fmt.Errorf("start bash in the sandbox: %w: %s", err, out)
	}
	requestEnd, request, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answer, answerEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer requestEnd.Close()
	defer answerEnd.Close()
	b.request, b.answer = request, answer
	role := "server"
	if b.as != "" {
		role = "early"
	}
	b.process = b.command(strings.Repeat(" ", maxCommand)+":", role, trace, requestEnd, answerEnd)
	if err := b.streams(); err != nil {
		return nil, err
	}
	return b, b.process.Start()
}

// command is a bash that will run text. Descriptors from 196 on are those of trace.c.
func (b *Bash) command(text, role string, trace, request, answer *os.File) *exec.Cmd {
	c := exec.Command("/real/bash", "--norc", "--noprofile", "-c", text)
	c.Args[0] = "bash"
	switch b.as {
	case "zsh":
		c = exec.Command("/real/zsh", "-f", "-c", text)
	case "dash":
		c = exec.Command("/real/dash", "-c", text)
	case "ash":
		c = exec.Command("/real/ash", "-c", text)
	}
	if b.as != "" {
		c.Args[0] = b.as
	}
	c.Dir = workDir
	c.Env = append(slices.Clone(environment), "LD_PRELOAD=/trace.so", "TOOLWARD_TRACE="+role)
	c.ExtraFiles = make([]*os.File, 197)
	c.ExtraFiles[193], _ = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	c.ExtraFiles[194], c.ExtraFiles[195], c.ExtraFiles[196] = request, answer, trace
	c.SysProcAttr = &syscall.SysProcAttr{
		Chroot: b.Root,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return c
}

// streams gives the server files for its standard streams, which are told apart by their numbers.
func (b *Bash) streams() error {
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		path := filepath.Join(b.Root, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		b.base[i] = identify(f)
		switch i {
		case 0:
			b.process.Stdin = f
		case 1:
			b.process.Stdout, b.out = f, f
		case 2:
			b.process.Stderr = f
		}
	}
	null := b.process.ExtraFiles[193]
	if null == nil {
		return fmt.Errorf("%w: no %s", ErrNoSandbox, os.DevNull)
	}
	b.null = identify(null)
	return nil
}

func identify(f *os.File) file {
	var st syscall.Stat_t
	if syscall.Fstat(int(f.Fd()), &st) != nil {
		return file{}
	}
	return file{uint64(st.Dev), st.Ino, uint64(st.Mode)} // the width depends on the platform
}

// build makes the root directory: the starters, what they need, the tracing library, and the files of the fixture.
func (b *Bash) build() error {
	for _, dir := range []string{"bin", "usr/bin", "real", "tmp", "dev", "etc", homeDir, workDir} {
		if err := os.MkdirAll(filepath.Join(b.Root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := b.compile(); err != nil {
		return err
	}
	programs := slices.Concat(starters, utilities)
	if b.as != "" && !slices.Contains(programs, b.as) {
		programs = append(programs, b.as)
	}
	for _, name := range programs {
		path, err := exec.LookPath(program(name))
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoSandbox, err)
		}
		if err := copyFile(path, filepath.Join(b.Root, "real", name)); err != nil {
			return err
		}
		if err := b.copyLibraries(path); err != nil {
			return err
		}
	}
	if data, err := os.ReadFile(stdbufLibrary); err == nil {
		if err := errors.Join(os.MkdirAll(b.Root+filepath.Dir(stdbufLibrary), 0o755), os.WriteFile(b.Root+stdbufLibrary, data, 0o755)); err != nil {
			return err
		}
	}
	// Without its locale bash would count bytes where the pattern "?" means a character.
	if locale, err := os.ReadDir("/usr/lib/locale/C.utf8"); err == nil && len(locale) > 0 {
		if err := os.CopyFS(filepath.Join(b.Root, "usr/lib/locale/C.utf8"), os.DirFS("/usr/lib/locale/C.utf8")); err != nil {
			return err
		}
	}
	var err error
	if b.realRoot, err = filepath.EvalSymlinks(b.Root); err != nil {
		return err
	}
	if b.analyst, err = newAnalyst(b.Root, b.as != ""); err != nil {
		return err
	}
	if b.fixture, err = newFixture(b.Root); err != nil {
		return err
	}
	return b.fixture.restore()
}

func (b *Bash) compile() error {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return fmt.Errorf("%w: a C compiler is needed: %w", ErrNoSandbox, err)
	}
	source := filepath.Join(b.Root, "trace.c")
	if err := os.WriteFile(source, traceSource, 0o600); err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"-shared", "-fPIC", "-o", filepath.Join(b.Root, "trace.so")},
		{"-DFILTER", "-o", filepath.Join(b.Root, "real", "filter")},
	} {
		out, err := exec.Command(cc, append(arguments, "-O2", source)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("compile the tracing library: %w\n%s", err, out)
		}
	}
	return os.Remove(source)
}

// copyLibraries copies what the loader would load, to the same places.
func (b *Bash) copyLibraries(program string) error {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return fmt.Errorf("%w: %s loads no libraries: ldd: %w", ErrNoSandbox, program, err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(field, "/") {
			continue
		}
		to := filepath.Join(b.Root, field)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := copyFile(field, to); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// Run runs a text as the argument of bash -c and returns what bash did.
func (b *Bash) Run(text string) (*Trace, error) {
	if len(text) > maxCommand || strings.Contains(text, "\x00") {
		return nil, fmt.Errorf("a text of %d bytes, or with NUL, cannot be an argument", len(text))
	}
	clear(b.shared[:16])
	if err := b.out.Truncate(0); err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint32(b.shared, uint32(len(text)))
	binary.LittleEndian.PutUint32(b.shared[24:], uint32(b.patience.Milliseconds()))
	copy(b.shared[headerSize:], text)
	if _, err := b.request.Write([]byte{1}); err != nil {
		return nil, err
	}
	var answer [8]byte
	if _, err := io.ReadFull(b.answer, answer[:]); err != nil {
		return nil, fmt.Errorf("bash is gone: %w", err)
	}
	return readTrace(b.shared, answer)
}

// Output is what the last text wrote to standard output.
func (b *Bash) Output() (string, error) {
	data, err := os.ReadFile(b.out.Name())
	return string(data), err
}

// checkEvery is how many texts may run before all files are compared, not only those that bash said it opened.
const checkEvery = 256

// Restore makes the files of the fixture what they were before a text ran.
func (b *Bash) Restore(trace *Trace) error {
	if trace.TimedOut {
		return b.fixture.restore()
	}
	for i := range trace.Opens {
		o := &trace.Opens[i]
		if !o.Writes() || o.Err != 0 || strings.HasPrefix(o.Path, "/dev/") || strings.HasPrefix(o.Path, "/tmp/sh-thd") {
			continue
		}
		name := b.physical(join(o.Dir, o.Path))
		if err := b.fixture.restoreOne(name); err != nil {
			return err
		}
	}
	return b.looked()
}

// looked counts what ran, and now and then looks whether other files changed than was seen.
func (b *Bash) looked() error {
	if b.runs++; b.runs%checkEvery == 0 {
		if changed := b.fixture.changed(); len(changed) > 0 {
			return fmt.Errorf("files changed that bash was not seen to open: %q", changed)
		}
	}
	return nil
}

// Close ends bash and everything in its sandbox.
func (b *Bash) Close() error {
	_ = b.request.Close()
	_ = b.answer.Close()
	_ = b.process.Wait()
	if b.executor != nil {
		b.executor.close()
	}
	return unix.Munmap(b.shared)
}
