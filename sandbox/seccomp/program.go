package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
)

// Where struct seccomp_data has what, on machines with the lower byte first.
const (
	offsetNumber    = 0
	offsetArch      = 4
	offsetArguments = 16

	returnKill  = 0x80000000 // SECCOMP_RET_KILL_PROCESS
	returnErrno = 0x00050000
	returnAllow = 0x7fff0000
)

// Program assembles the profile for this machine's processor: what the kernel takes, instruction after instruction.
func (p Profile) Program() ([]byte, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	instructions, err := p.assemble(machine)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	program := make([]byte, 0, len(raw)*8)
	for _, i := range raw {
		program = binary.NativeEndian.AppendUint16(program, i.Op)
		program = append(program, i.Jt, i.Jf)
		program = binary.NativeEndian.AppendUint32(program, i.K)
	}
	return program, nil
}

// assemble makes a program that walks the numbers upwards in ranges with one answer. The kernel remembers for every
// number whether it is always allowed, so the length of the way costs nothing.
func (p Profile) assemble(machine *arch.Info) ([]bpf.Instruction, error) {
	if machine != arch.X86_64 && machine != arch.AARCH64 {
		return nil, fmt.Errorf("seccomp: no profile for %s", machine.Name)
	}
	rules, err := p.byNumber(machine)
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		// Numbers mean something else for programs of another architecture: they are ended.
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: returnKill},
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
	}
	if machine == arch.X86_64 {
		program = append(program, // x32 calls the same kernel by other numbers
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(arch.X32.SeccompMask), SkipTrue: 1},
			bpf.RetConstant{Val: returnKill})
	}
	numbers := slices.Sorted(func(yield func(uint32) bool) {
		for n := range rules {
			if !yield(n) {
				return
			}
		}
	})
	for i := 0; i < len(numbers); {
		low, rule := numbers[i], rules[numbers[i]]
		high := low
		for i++; i < len(numbers) && plain(rule) && plain(rules[numbers[i]]) && rules[numbers[i]].Else == rule.Else && numbers[i] == high+1; i++ {
			high++
		}
		body := answer(rule)
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: high, SkipFalse: 1},
			bpf.Jump{Skip: uint32(len(body) + 2)},
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: low, SkipTrue: 1},
			returns(Unknown))
		program = append(program, body...)
	}
	return append(program, returns(Unknown)), nil
}

func plain(r *Rule) bool { return len(r.Cases) == 0 }

// byNumber finds the rule of every system call of a machine.
func (p Profile) byNumber(machine *arch.Info) (map[uint32]*Rule, error) {
	rules := map[uint32]*Rule{}
	for i := range p {
		for _, name := range p[i].Names {
			number, known := machine.SyscallNames[name]
			if !known {
				continue // other machines have it
			}
			if rules[uint32(number)] != nil {
				return nil, fmt.Errorf("seccomp: two rules for %s", name)
			}
			rules[uint32(number)] = &p[i]
		}
	}
	return rules, nil
}

// answer assembles the answer of one rule.
func answer(r *Rule) []bpf.Instruction {
	var program []bpf.Instruction
	for _, c := range r.Cases {
		rest := uint8(len(c.Matches)*3 + 1) // instructions of this case
		for _, m := range c.Matches {
			rest -= 3
			program = append(program,
				bpf.LoadAbsolute{Off: uint32(offsetArguments + 8*m.Argument), Size: 4},
				bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: m.Mask},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: m.Value, SkipTrue: rest})
		}
		program = append(program, returns(c.Action))
	}
	return append(program, returns(r.Else))
}

func returns(a Action) bpf.RetConstant {
	if a == Allow {
		return bpf.RetConstant{Val: returnAllow}
	}
	return bpf.RetConstant{Val: returnErrno | uint32(a)}
}
