package seccomp

import (
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// call is a system call as the filter sees it.
type call struct {
	name string
	args [6]uint64
}

// run asks the assembled program. The interpreter reads words with the higher byte first, so that is how they are laid
// out here; every word of the structure is loaded whole.
func run(t *testing.T, program []bpf.Instruction, id, number uint32, args [6]uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := binary.BigEndian.AppendUint32(nil, number)
	data = binary.BigEndian.AppendUint32(data, id)
	data = binary.BigEndian.AppendUint64(data, 0)
	for _, a := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(a))
		data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
	}
	result, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(result)
}

func verdict(t *testing.T, p Profile, machine *arch.Info, c call) Action {
	t.Helper()
	program, err := p.assemble(machine)
	if err != nil {
		t.Fatal(err)
	}
	number, ok := machine.SyscallNames[c.name]
	if !ok {
		t.Fatalf("%s has no %s", machine.Name, c.name)
	}
	switch r := run(t, program, uint32(machine.ID), uint32(number), c.args); {
	case r == returnAllow:
		return Allow
	case r&^0xffff == returnErrno:
		return Action(r & 0xffff)
	default:
		t.Fatalf("%v: answer %#x", c, r)
		return 0
	}
}

func TestAnswers(t *testing.T) {
	cases := []struct {
		name    string
		call    call
		options Options
		want    Action
	}{
		{"an ordinary call", call{name: "read"}, Options{}, Allow},
		{"the mount family", call{name: "mount"}, Options{}, Deny},
		{"the new mount calls", call{name: "open_tree_attr"}, Options{}, Deny},
		{"a call that nobody listed", call{name: "lsm_list_modules"}, Options{}, Unknown},
		{"a thread", call{"clone", [6]uint64{0x3d0f00}}, Options{}, Allow},
		{"a user namespace", call{"clone", [6]uint64{0x10000011}}, Options{}, Deny},
		{"clone3", call{name: "clone3"}, Options{}, Unknown},
		{"TCP", call{"socket", [6]uint64{2, 1 | 0x80000, 6}}, Options{}, Allow},
		{"a raw socket", call{"socket", [6]uint64{2, 3, 1}}, Options{}, noFamily},
		{"a packet socket", call{"socket", [6]uint64{17, 3, 0x300}}, Options{}, noFamily},
		{"vsock", call{"socket", [6]uint64{40, 1, 0}}, Options{}, noFamily},
		{"the crypto interface", call{"socket", [6]uint64{38, 5, 0}}, Options{}, noFamily},
		{"route netlink", call{"socket", [6]uint64{16, 3, 0}}, Options{}, Allow},
		{"netfilter netlink", call{"socket", [6]uint64{16, 3, 12}}, Options{}, noFamily},
		{"a Unix socket", call{"socket", [6]uint64{1, 1, 0}}, Options{}, Allow},
		{"a Unix socket where nothing hides those of others", call{"socket", [6]uint64{1, 1, 0}}, Options{NoSockets: true}, noFamily},
		{"a pair of sockets there", call{"socketpair", [6]uint64{1, 1, 0}}, Options{NoSockets: true}, Allow},
		{"typing into a terminal", call{"ioctl", [6]uint64{0, 0x5412}}, Options{}, Deny},
		{"the same, with a bit that the kernel ignores", call{"ioctl", [6]uint64{0, 0x1_0000_5412}}, Options{}, Deny},
		{"the size of a terminal", call{"ioctl", [6]uint64{0, 0x5413}}, Options{}, Allow},
		{"the present personality", call{"personality", [6]uint64{0xffffffff}}, Options{}, Allow},
		{"READ_IMPLIES_EXEC", call{"personality", [6]uint64{0x400000}}, Options{}, Deny},
		{"a block device", call{"mknodat", [6]uint64{0, 0, 0o060600}}, Options{}, Deny},
		{"a FIFO", call{"mknodat", [6]uint64{0, 0, 0o010600}}, Options{}, Allow},
		{"ptrace", call{name: "ptrace"}, Options{}, Deny},
		{"ptrace for debuggers", call{name: "ptrace"}, Options{Ptrace: true}, Allow},
		{"setuid bit", call{"fchmodat", [6]uint64{0, 0, 0o4755}}, Options{}, Deny},
		{"an ordinary mode", call{"fchmodat", [6]uint64{0, 0, 0o755}}, Options{}, Allow},
		{"setgid bit", call{"fchmodat", [6]uint64{0, 0, 0o2755}}, Options{}, Deny},
		{"both, of an open file", call{"fchmod", [6]uint64{0, 0o6711}}, Options{}, Deny},
		{"setuid bit, the newest call", call{"fchmodat2", [6]uint64{0, 0, 0o4755}}, Options{}, Deny},
		{"sticky bit", call{"fchmodat", [6]uint64{0, 0, 0o1777}}, Options{}, Allow},
		{"creating setgid", call{"openat", [6]uint64{0, 0, 0o101, 0o2755}}, Options{}, Deny},
		{"O_TMPFILE with setuid", call{"openat", [6]uint64{0, 0, 0o20200001, 0o4755}}, Options{}, Deny},
		{"opening: the mode is whatever was there", call{"openat", [6]uint64{0, 0, 0, 0o6755}}, Options{}, Allow},
		{"openat2, whose mode cannot be seen", call{name: "openat2"}, Options{}, Unknown},
	}
	for _, c := range cases {
		for _, machine := range []*arch.Info{arch.X86_64, arch.AARCH64} {
			if got := verdict(t, New(c.options), machine, c.call); got != c.want {
				t.Errorf("%s on %s: answer %d, want %d", c.name, machine.Name, got, c.want)
			}
		}
	}
}

func TestOtherArchitecturesAreEnded(t *testing.T) {
	program, err := New(Options{}).assemble(arch.X86_64)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, program, uint32(arch.I386.ID), 3, [6]uint64{}); got != returnKill {
		t.Errorf("a 32-bit call: %#x", got)
	}
	if got := run(t, program, uint32(arch.X86_64.ID), 0x40000000, [6]uint64{}); got != returnKill {
		t.Errorf("an x32 call: %#x", got)
	}
	if got := run(t, program, uint32(arch.X86_64.ID), 4000, [6]uint64{}); got != returnErrno|enosys {
		t.Errorf("a number of the future: %#x", got)
	}
}

func TestEveryNameIsASystemCall(t *testing.T) {
	for _, rule := range New(Options{}) {
		for _, name := range rule.Names {
			_, amd64 := arch.X86_64.SyscallNames[name]
			_, arm64 := arch.AARCH64.SyscallNames[name]
			if !amd64 && !arm64 {
				t.Errorf("there is no system call %s", name)
			}
		}
	}
}

// The two forms must say the same: random calls, with arguments near those that count.
func TestDockerSaysTheSame(t *testing.T) {
	for _, options := range []Options{{}, {Ptrace: true}} {
		profile := New(options)
		data, err := profile.Docker()
		if err != nil {
			t.Fatal(err)
		}
		var form dockerProfile
		if err := json.Unmarshal(data, &form); err != nil {
			t.Fatal(err)
		}
		program, err := profile.assemble(arch.X86_64)
		if err != nil {
			t.Fatal(err)
		}
		near := []uint64{0, 1, 2, 3, 10, 16, 17, 40, 0x5412, 0x541c, 0x40000, 0xffffffff, 0x10000011, 0o4755, 0o101, 0o60600}
		random := rand.New(rand.NewPCG(1, 2))
		for name, number := range arch.X86_64.SyscallNames {
			for range 300 {
				var args [6]uint64
				for i := range args {
					args[i] = near[random.IntN(len(near))]
					if random.IntN(2) == 0 {
						args[i] ^= 1 << random.IntN(40)
					}
				}
				got := docker(t, &form, name, args)
				want := run(t, program, uint32(arch.X86_64.ID), uint32(number), args)
				if (want == returnAllow) != (got == Allow) || want != returnAllow && uint32(got) != want&0xffff {
					t.Fatalf("%s %x: docker %d, kernel %#x", name, args, got, want)
				}
			}
		}
	}
}

// docker is what a container engine answers; two rules for one call are an error.
func docker(t *testing.T, form *dockerProfile, name string, args [6]uint64) Action {
	t.Helper()
	answer, found := Action(form.DefaultErrnoRet), false
	for _, rule := range form.Syscalls {
		if !contains(rule.Names, name) || !holds(rule.Args, args) {
			continue
		}
		if found {
			t.Fatalf("two rules for %s %x", name, args)
		}
		found, answer = true, Allow
		if rule.ErrnoRet != nil {
			answer = Action(*rule.ErrnoRet)
		}
	}
	return answer
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func holds(matches []dockerMatch, args [6]uint64) bool {
	for _, m := range matches {
		if args[m.Index]&m.Value != m.ValueTwo {
			return false
		}
	}
	return true
}
