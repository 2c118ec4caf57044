package seccomp

import (
	"encoding/json"
	"fmt"
)

// dockerProfile is the form that container engines read.
type dockerProfile struct {
	DefaultAction   string       `json:"defaultAction"`
	DefaultErrnoRet uint         `json:"defaultErrnoRet"`
	ArchMap         []dockerArch `json:"archMap"`
	Syscalls        []dockerRule `json:"syscalls"`
}

// dockerArch names an architecture; without others that it can also run, their programs are ended.
type dockerArch struct {
	Architecture     string   `json:"architecture"`
	SubArchitectures []string `json:"subArchitectures"`
}

type dockerRule struct {
	Names    []string      `json:"names"`
	Action   string        `json:"action"`
	ErrnoRet *uint         `json:"errnoRet,omitempty"`
	Args     []dockerMatch `json:"args,omitempty"`
}

type dockerMatch struct {
	Index    int    `json:"index"`
	Value    uint64 `json:"value"` // the mask
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// Docker writes the profile for a container engine. Its rules have no order, so every answer but the default one is
// written with conditions that exclude each other.
func (p Profile) Docker() ([]byte, error) {
	out := dockerProfile{
		DefaultAction: "SCMP_ACT_ERRNO", DefaultErrnoRet: uint(Unknown),
		ArchMap: []dockerArch{{"SCMP_ARCH_X86_64", []string{}}, {"SCMP_ARCH_AARCH64", []string{}}},
	}
	for _, rule := range p {
		rest := []Case{{Action: rule.Else}}
		for _, c := range rule.Cases {
			for _, piece := range covered(rest, c) {
				out.Syscalls = append(out.Syscalls, dockerForm(rule.Names, piece, c.Action))
			}
			rest = without(rest, c)
		}
		for _, piece := range rest {
			out.Syscalls = append(out.Syscalls, dockerForm(rule.Names, piece, rule.Else))
		}
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	return append(data, '\n'), nil
}

func dockerForm(names []string, c Case, action Action) dockerRule {
	rule := dockerRule{Names: names, Action: "SCMP_ACT_ALLOW"}
	if action != Allow {
		number := uint(action)
		rule.Action, rule.ErrnoRet = "SCMP_ACT_ERRNO", &number
	}
	for _, m := range c.Matches {
		rule.Args = append(rule.Args, dockerMatch{m.Argument, uint64(m.Mask), uint64(m.Value), "SCMP_CMP_MASKED_EQ"})
	}
	return rule
}

// A region is what a case covers, argument by argument: bits under a mask have a value.
type region [6]struct{ mask, value uint32 }

func regionOf(c Case) (r region) {
	for _, m := range c.Matches {
		r[m.Argument].mask, r[m.Argument].value = m.Mask, m.Value
	}
	return r
}

func (r region) caseWith(action Action) Case {
	c := Case{Action: action}
	for i, bits := range r {
		if bits.mask != 0 {
			c.Matches = append(c.Matches, Match{i, bits.mask, bits.value})
		}
	}
	return c
}

func (r region) meets(other region) bool {
	for i := range r {
		if both := r[i].mask & other[i].mask; (r[i].value^other[i].value)&both != 0 {
			return false
		}
	}
	return true
}

// covered is the parts of regions that a case covers.
func covered(regions []Case, c Case) []Case {
	var parts []Case
	cover := regionOf(c)
	for _, piece := range regions {
		part := regionOf(piece)
		if !part.meets(cover) {
			continue
		}
		for i := range part {
			part[i].mask |= cover[i].mask
			part[i].value |= cover[i].value
		}
		parts = append(parts, part.caseWith(c.Action))
	}
	return parts
}

// without is regions less what a case covers: for every bit that the case fixes and the region leaves open, the part
// where it is the other one, the bits before it being those of the case.
func without(regions []Case, c Case) []Case {
	var left []Case
	cover := regionOf(c)
	for _, piece := range regions {
		part := regionOf(piece)
		if !part.meets(cover) {
			left = append(left, piece)
			continue
		}
		for i := range part {
			for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
				if cover[i].mask&bit == 0 || part[i].mask&bit != 0 {
					continue
				}
				other := part
				other[i].mask |= bit
				other[i].value |= ^cover[i].value & bit
				left = append(left, other.caseWith(piece.Action))
				part[i].mask |= bit
				part[i].value |= cover[i].value & bit
			}
		}
	}
	return left
}
