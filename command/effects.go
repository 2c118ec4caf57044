package command

import (
	"path"
	"slices"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// known finds out what the program does with its arguments, if it has a profile.
func (v *evaluation) known(seg *Segment) {
	if !seg.Program.Found() || seg.Blocked != "" || seg.shell {
		return
	}
	name, real := path.Base(seg.Program.Path), path.Base(seg.Program.Real)
	profile := profiles.Of(name)
	other := profile
	if real != name {
		other = profiles.Of(real)
	}
	if profile != nil {
		seg.effects, seg.profile = profile.Effects(seg.Args), true
	}
	if other != nil && other != profile && !slices.Contains(goesByName, real) {
		// A link gives one program the name of another: what either would do counts.
		seg.effects, seg.profile = append(seg.effects, other.Effects(seg.Args)...), true
	}
	if obeysDirectory(profile) || obeysDirectory(other) || hasEffect(seg.effects, shell.Project) {
		// git, make and their like run what lies in the directory in which they are started.
		seg.effects = append(seg.effects, shell.Effect{Kind: shell.Enters, Path: ".", Via: "working directory"})
	}
	seg.effects = append(seg.effects, v.bySettings(seg)...)
	switch {
	case seg.profile:
	case v.workspaceScript(seg): // it may do all that the project's code may
		seg.effects = []shell.Effect{{Kind: shell.Project, Via: seg.Program.Word}}
	default:
		seg.effects = v.floor(seg)
	}
}

// goesByName are programs that are what they are called: of links that lead to them only the name of the link counts. "cargo" is
// rustup's link to what the project's tool chain has of that name.
var goesByName = []string{"rustup"}

// workspaceScript reports whether the program is one of the project's own, called by its path.
func (v *evaluation) workspaceScript(seg *Segment) bool {
	return !seg.Program.searched && place.Within(seg.Program.Path, v.where.Workspace) && place.Within(seg.Program.Real, v.where.Workspace)
}

// obedient are the profiles of programs that obey what lies in a directory: those that can be sent to another one.
var obedient = sync.OnceValue(func() map[*profiles.Profile]bool {
	set := map[*profiles.Profile]bool{}
	for _, p := range profiles.All() {
		for _, section := range p.Sections {
			for _, option := range section.Options {
				set[p] = set[p] || option.Role.Name == "enters"
			}
		}
	}
	return set
})

func obeysDirectory(p *profiles.Profile) bool { return p != nil && obedient()[p] }

// maxEffects bounds what is judged of one command.
const maxEffects = 1000

// permits judges all effects of the segment by what a yes covers.
func (v *evaluation) permits(seg *Segment, p permit, c circumstances) bool {
	if !seg.profile && !p.everything && v.r.Level != toolward.Normal {
		seg.found(Tensed, "nothing is known of what "+seg.Program.Path+" does with its arguments, and the session is tense")
		return false
	}
	if len(seg.effects) > maxEffects {
		seg.found(ArgumentUnknown, "it has more effects than anybody reads")
		return false
	}
	judged := make([]Judged, 0, len(seg.effects))
	asks := seg.Asks
	covered := true
	for _, effect := range seg.effects {
		j := v.judgeEffect(seg, effect, p, c)
		if j.Verdict != toolward.Allow {
			covered = false
			asks = appendFinding(asks, Finding{j.Code, j.text()})
		}
		judged = append(judged, j)
	}
	seg.Effects = judged
	if !covered {
		seg.Asks = asks
	}
	return covered
}

func appendFinding(list []Finding, f Finding) []Finding {
	if slices.Contains(list, f) {
		return list
	}
	return append(slices.Clip(list), f)
}

// judgeEffect judges one effect. What it does not know asks.
func (v *evaluation) judgeEffect(seg *Segment, e shell.Effect, p permit, c circumstances) Judged {
	j := Judged{Effect: e, Verdict: toolward.Ask}
	ok := false
	switch e.Kind {
	case shell.Reads:
		j.Code = ArgumentRead
		ok = v.everywhere(seg, &j, p, c, func(r place.Resolved) bool { return v.mayRead(seg, r, p) })
		ok = ok && (p.read || p.everything)
	case shell.Writes:
		j.Code = ArgumentWrite
		ok = v.everywhere(seg, &j, p, c, func(r place.Resolved) bool {
			may := v.mayWrite(r, p) || p.write && mayLock(seg, r)
			if may && !v.mayTake(seg, r, p) {
				j.Why, may = "it goes with all that lies below, more than may go without a question", false
			}
			return may
		})
		ok = ok && (p.write || p.everything)
	case shell.Enters:
		j.Code = ArgumentExec
		ok = v.everywhere(seg, &j, p, c, func(r place.Resolved) bool {
			if mayEnter(r, p) && !p.everything && seg.obeysRepositories() {
				j.Why = v.strangeRepository(r.Real)
			}
			return mayEnter(r, p) && j.Why == ""
		})
	case shell.Runs:
		j.Code = ArgumentExec
		ok = v.runs(seg, &j, c) && !v.readsListed(seg, &j, c)
	case shell.Project:
		j.Code, ok = ArgumentExec, p.project || p.everything
		if v.strangers && !p.everything {
			j.Why, ok = "it may be what another part of the command has unpacked", false
		}
	case shell.Installs:
		// A name that a model made up, or mistyped, is one that a stranger may have taken.
		j.Code, ok = ArgumentExec, p.everything || e.Unless != "" && v.hasTool(seg, e.Unless)
		v.out.Network = v.out.Network || !ok
	case shell.Network:
		if !seg.profile && !p.hosts {
			p.network = false
		}
		j.Code, ok = ArgumentNetwork, p.everything || (p.network || p.fetchers && fetches(e.By)) && publicHost(e.Host)
		if ok && !p.everything && !p.hosts && !v.knownRemote(seg, &e) {
			j.Why, ok = "the project does not name it", false
		}
		v.out.Network = true
	case shell.Evaluates:
		j.Code, ok = ArgumentExec, p.inline || p.everything
	case shell.Configures, shell.Destroys:
		j.Code, ok = ArgumentWrite, p.everything || e.Kind == shell.Destroys && p.write && v.takenBack(seg)
		if e.Path != "" {
			ok = v.everywhere(seg, &j, p, c, func(r place.Resolved) bool { return v.mayWrite(r, p) }) && ok
		}
	case shell.Environment:
		j.Code, ok = ArgumentRead, p.everything
	case shell.Signs:
		// A signature says that the person has seen what is signed.
		j.Code, ok = ArgumentExec, p.everything
	default:
		j.Code, ok = ArgumentUnknown, p.everything
	}
	if ok {
		j.Verdict, j.Code = toolward.Allow, ""
	}
	return j
}

// everywhere asks about the path of an effect in every directory in which the segment may start.
func (v *evaluation) everywhere(seg *Segment, j *Judged, p permit, c circumstances, may func(place.Resolved) bool) bool {
	e := &j.Effect
	if v.r.Places == nil || len(seg.OtherDir) >= maxDirs {
		return false
	}
	if unknownOperand(e.Path) {
		// Which file it is becomes known when it runs: names that a listing prints lie below what it lists.
		return e.Kind == shell.Reads && (c.listed || v.mayReadAll(seg, may))
	}
	for i := -1; i < len(seg.OtherDir); i++ {
		dir := seg.Dir
		if i >= 0 {
			dir = seg.OtherDir[i]
		}
		from := absolute(dir, e.Dir)
		if e.IfIn && !v.mayBeDirectory(from, path.Dir(e.Path)) {
			continue // "cp a b" makes b/a only if b is a directory
		}
		r, err := v.locate(from, e.Path)
		if err != nil {
			j.Place = ""
			return false // nobody knows where that is
		}
		if j.Place = r.Zone.String(); i < 0 {
			j.at = r
		}
		if !may(r) {
			return false
		}
		if e.Far && r.Kind == place.KindDirectory && !p.everything && !v.linksStay(r.Real, may) {
			return false
		}
		if e.Kind == shell.Reads && r.Kind == place.KindDirectory && !p.everything && seg.readsBelow() {
			if name, found := v.secretBelow(r.Real, filterOf(seg), false); found {
				j.Why = "it reads what lies below, " + name + " among it"
				return false
			}
		}
	}
	return true
}

// mayBeDirectory reports whether a path is a directory, or can have become one: "mkdir b && cp a b". What cannot be
// looked up may be anything.
func (v *evaluation) mayBeDirectory(dir, p string) bool {
	r, err := v.locate(dir, p)
	return err != nil || (r.Kind == place.KindDirectory || r.Kind == place.KindMissing && v.several)
}

// mayReadAll asks about the whole file system.
func (v *evaluation) mayReadAll(seg *Segment, may func(place.Resolved) bool) bool {
	r, err := v.locate(seg.Dir, "/")
	return err == nil && may(r)
}
