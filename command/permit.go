package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// permit is what one yes covers.
type permit struct {
	everything bool // whatever the program does, except to guarded files
	read       bool // where the read tool may
	write      bool // in the workspace
	network    bool // to public hosts
	hosts      bool // a person named the network: to public hosts, of a program of which nothing else is known, too
	fetchers   bool // to public hosts, by programs within this one that may
	project    bool // code of the project
	outside    bool // reading outside the workspace, where the read tool may
	inline     bool // code in the arguments
}

// permitOf says what an entry covers. From level elevated only what a person named counts.
func (v *evaluation) permitOf(e *entry) permit {
	if e.Argv != nil {
		return permit{everything: true}
	}
	p := v.presetPermit()
	if e.Effects != nil {
		p.read = slices.Contains(e.Effects, allowlist.EffectRead)
		p.write = slices.Contains(e.Effects, allowlist.EffectWrite)
		p.network = slices.Contains(e.Effects, allowlist.EffectNetwork)
		p.hosts = p.network
		p.project = p.project && p.write // code of the project writes what it likes
	}
	return p
}

// presetPermit is what an entry covers that says nothing about effects.
func (v *evaluation) presetPermit() permit {
	normal := v.r.Level == toolward.Normal
	return permit{
		read:    true,
		write:   normal && (v.e.policy.Writes || v.e.policy.Preset == Developer),
		network: normal,
		project: normal,
		outside: normal,
		inline:  v.e.policy.LooseInlineEval,
	}
}

// fetchers talk to the network under the preset "developer" without an entry: to the remotes and registries that the
// project names.
var fetchers = strings.Fields(`git go npm pnpm yarn bun deno pip pip3 uv poetry pipenv pdm tox nox pre-commit govulncheck
	cargo rustup bundle gem mvn gradle sbt composer dotnet swift zig bazel bazelisk buf gh hugo kubectl mvnw gradlew
	docker podman terraform tofu`)

func fetches(program string) bool { return slices.Contains(fetchers, program) }

// mayRead is what the read tool may, and no more: not secrets, nor a directory that holds them.
func (v *evaluation) mayRead(seg *Segment, r place.Resolved, p permit) bool {
	switch r.Zone {
	case place.Workspace, place.Instructions:
		return true
	case place.Outside, place.Protected:
	default:
		return false
	}
	if device(r) || !p.everything && (!p.outside || sends(seg)) {
		return false
	}
	// "grep -r" in the home directory reads every key in it. Programs that only list show names.
	home := v.r.Places.Layout().Home
	return !place.Within(home, r.Real) || slices.Contains(listers, plainName(seg.Program.Word)) && r.Zone == place.Outside
}

// listers show names and sizes, never contents.
var listers = []string{"ls", "stat", "du", "df", "tree", "file", "test", "[", "basename", "dirname", "realpath", "readlink"}

// sends reports whether what the segment reads may leave the machine.
func sends(seg *Segment) bool {
	return hasEffect(seg.effects, shell.Network) || slices.Contains([]string{"curl", "wget"}, plainName(seg.Program.Word))
}

// device reports whether a path is a door to the kernel or the network rather than a file.
func device(r place.Resolved) bool {
	if place.Within(r.Real, "/dev") {
		return !slices.Contains([]string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"}, r.Real)
	}
	return r.Kind.Special()
}

// mayWrite is what the write tool may without asking: ordinary files of the workspace. Git's own files are none: what
// lies in them runs later.
func (v *evaluation) mayWrite(r place.Resolved, p permit) bool {
	if r.Real == "/dev/null" {
		return true
	}
	if device(r) {
		return false
	}
	switch r.Zone {
	case place.Workspace:
		return !slices.Contains(strings.Split(strings.ToLower(r.Real), "/"), ".git")
	case place.Outside:
		return p.everything || v.r.Places.InRoots(r.Real, true) || v.freshTemporary(r)
	}
	return false
}

// freshTemporary reports whether a path is a new file that everybody may make: directly in /tmp, with a name that is seen. What is
// there already is somebody's, and nothing that lies there runs without a question.
func (v *evaluation) freshTemporary(r place.Resolved) bool {
	name := path.Base(r.Real)
	return v.e.policy.Preset == Developer && r.Kind == place.KindMissing && path.Dir(r.Real) == "/tmp" && name[0] != '.' && !r.ViaLink
}

// mayEnter says in which directories programs may obey what they find.
func mayEnter(r place.Resolved, p permit) bool {
	switch r.Zone {
	case place.Workspace, place.Instructions:
		return !slices.Contains(strings.Split(strings.ToLower(r.Real), "/"), ".git")
	case place.Outside:
		return p.everything
	}
	return false
}
