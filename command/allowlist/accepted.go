package allowlist

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/modes"
)

// Ledger keeps what of the file a person has accepted, where other programs of the same user cannot make it. What stands in the
// file and not in the ledger loosens nothing: else a program that an agent may start would write itself the right to start others.
type Ledger interface {
	// Accepted is what was accepted; nil if nothing was.
	Accepted() []byte
	// May says why nothing can be accepted now; nil if it can.
	May() error
	// Accept keeps content as what a person has accepted, durably.
	Accept(ctx context.Context, content []byte) error
	// Tighten replaces what was accepted by less.
	Tighten(content []byte)
}

// acceptedFile is what a person has accepted; empty if that is not known.
func (a *Store) acceptedFile() *File {
	empty := &File{Agents: map[string]*AgentFile{}}
	if a.opts.Ledger == nil {
		return empty
	}
	content := a.opts.Ledger.Accepted()
	if content == nil {
		return empty
	}
	file, _, err := Parse(content)
	if err != nil {
		a.opts.Log.Error("what was accepted of "+FileName+" cannot be read, so none of it counts", "err", err)
		return empty
	}
	return file
}

// authority is the part of the file that decides: without what is different each time it is written or read, and without the
// socket, whose token every program of this user can read.
func (f *File) authority() *File {
	c := f.clone()
	c.Socket = Socket{}
	for _, a := range c.Agents {
		for i := range a.Allowlist {
			e := &a.Allowlist[i]
			e.ID, e.LastUsedAt, e.LastUsedCommand, e.LastResolvedPath = "", 0, "", ""
		}
	}
	return c
}

// permits reports whether an accepted entry allows all that another one does.
func (e *Entry) permits(other *Entry) bool {
	if e.Pattern != other.Pattern || e.ArgPattern != "" || !slices.Equal(e.Argv, other.Argv) || (e.Argv == nil) != (other.Argv == nil) ||
		other.Host != "" && other.Host != e.Host {
		return false
	}
	if e.Effects == nil {
		// What the preset says may be less than a list: under strict, "network" written into the entry would let the program out.
		return len(other.Effects) == 0
	}
	// No list of effects leaves them to the preset, which may be more than any list.
	return other.Effects != nil && !slices.ContainsFunc(other.Effects, func(effect string) bool { return !slices.Contains(e.Effects, effect) })
}

// permits reports whether a person accepted an entry under an agent's name, or for every agent.
func (f *File) permits(agent string, e *Entry) bool {
	for _, name := range []string{AnyAgent, agent} {
		if a := f.Agents[name]; a != nil && slices.ContainsFunc(a.Allowlist, func(own Entry) bool { return own.permits(e) }) {
			return true
		}
	}
	return false
}

// shared is what the file and what was accepted have in common. The settings are those of the file; which of two settings is the
// stricter one is seen for each agent by [Snapshot.Settings], because an agent's own setting stands in the place of a stricter
// one for all.
func (f *File) shared(accepted *File) *File {
	common := f.clone()
	for name, a := range common.Agents {
		a.Allowlist = slices.DeleteFunc(a.Allowlist, func(e Entry) bool { return !accepted.permits(name, &e) })
	}
	return common
}

// common is what was accepted and the file still has: under the settings that were accepted, in the words of either.
func (f *File) common(file *File) *File {
	common, own := file.authority().shared(f), f.authority()
	common.Defaults = own.Defaults
	for name := range common.Agents {
		if own.Agents[name] == nil {
			own.Agents[name] = &AgentFile{}
		}
	}
	for name, a := range own.Agents {
		var entries []Entry
		if c := common.Agents[name]; c != nil {
			entries = c.Allowlist
		}
		for _, e := range a.Allowlist {
			if file.permits(name, &e) && !slices.ContainsFunc(entries, func(kept Entry) bool { return kept.permits(&e) }) {
				entries = append(entries, e)
			}
		}
		a.Allowlist = entries
	}
	return own
}

// agents are all names that either file has, with one that none has.
func agents(files ...*File) []string {
	names := map[string]bool{AnyAgent: true, MainAgent: true, "\x00": true}
	for _, f := range files {
		for name := range f.Agents {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// loosens reports whether the file allows something that was not accepted.
func (f *File) loosens(accepted *File) bool {
	for _, name := range agents(f, accepted) {
		if a := f.Agents[name]; a != nil && slices.ContainsFunc(a.Allowlist, func(e Entry) bool { return e.ArgPattern == "" && !accepted.permits(name, &e) }) {
			return true
		}
		own := f.settings(name)
		if own.Stricter(accepted.settings(name)) != own {
			return true
		}
	}
	return false
}

// tighten takes from what was accepted what the file no longer has, so that it does not come back without a person: an entry
// that was removed is not accepted any more. A file that is missing or cannot be read takes nothing; it allows nothing either.
func (a *Store) tighten(file, accepted *File) *File {
	if a.opts.Ledger == nil || !accepted.loosens(file) {
		return accepted
	}
	less := file.authority()
	if file.loosens(accepted) {
		less = accepted.common(file)
	}
	less.givenAs(accepted)
	before, err := accepted.authority().Encode()
	content, err2 := less.Encode()
	if err := errors.Join(err, err2); err != nil {
		a.opts.Log.Error("what became stricter in "+FileName+" is not kept", "err", err)
		return less
	}
	if string(before) != string(content) {
		a.opts.Ledger.Tighten(content)
	}
	return less
}

// givenAs takes who gave the entries from what was accepted: what the file says of that is anybody's word, and a mark that is gone
// would let an entry outlive who gave it.
func (f *File) givenAs(accepted *File) {
	for name, a := range f.Agents {
		for i := range a.Allowlist {
			e := &a.Allowlist[i]
			e.GivenBy = ""
			if from := accepted.Agents[name]; from != nil {
				if j := slices.IndexFunc(from.Allowlist, func(own Entry) bool { return own.permits(e) }); j >= 0 {
					e.GivenBy = from.Allowlist[j].GivenBy
				}
			}
		}
	}
}

// Withdraw has what somebody gave by answering wait for a person again, because what let them in was taken away. It says how
// many entries do.
func (a *Store) Withdraw(givenBy string) (n int, err error) {
	if a.opts.Ledger == nil || givenBy == "" {
		return 0, nil
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	defer a.forget()
	less := a.acceptedFile()
	for _, agent := range less.Agents {
		before := len(agent.Allowlist)
		agent.Allowlist = slices.DeleteFunc(agent.Allowlist, func(e Entry) bool { return e.GivenBy == givenBy })
		n += before - len(agent.Allowlist)
	}
	if n == 0 {
		return 0, nil
	}
	content, err := less.Encode()
	if err != nil {
		return 0, err
	}
	a.opts.Ledger.Tighten(content)
	return n, nil
}

// Waiting is what of the file waits for a person: somebody wrote it there who is not known to be one.
type Waiting struct {
	Revision string   // names exactly this content
	Diff     string   // unified
	Whole    bool     // the difference is all there
	Changes  []string // in words
}

// maxDifference bounds what people are shown, as that of the configuration.
const maxDifference = 64 << 10

// Waiting is what waits for a person; nil if nothing does.
func (a *Store) Waiting() (*Waiting, error) {
	return a.Current().waiting()
}

func (s *Snapshot) waiting() (*Waiting, error) {
	if s.Corrupt != nil || s.accepted == nil || !s.File.loosens(s.accepted) {
		return nil, nil
	}
	before, err := s.accepted.authority().Encode()
	after, err2 := s.File.authority().Encode()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	diff := display.NewDiff(maxDifference)
	diff.File("accepted/"+FileName, "changed/"+FileName, string(before), string(after))
	return &Waiting{
		Revision: contentHash(after), Diff: diff.String(), Whole: diff.Whole(), Changes: Changes(s.accepted.authority(), s.File.authority()),
	}, nil
}

// ErrNotWaiting is returned when what a person accepted is not what waits (any more).
var ErrNotWaiting = errors.New(FileName + " has changed since it was shown: look at the difference again")

// Accept lets what waits count, if it is still what has this revision.
func (a *Store) Accept(ctx context.Context, revision string) error {
	if a.opts.Ledger == nil {
		return ErrNotWaiting
	}
	_, err := a.locked(ctx, func(s *Snapshot) (file, accepted *File, err error) {
		waiting, err := s.waiting()
		switch {
		case err != nil:
			return nil, nil, err
		case waiting == nil || waiting.Revision != revision:
			return nil, nil, ErrNotWaiting
		case !waiting.Whole:
			return nil, nil, fmt.Errorf("%s: the difference is too long to be shown whole: change the file in smaller steps", FileName)
		}
		whole := s.File.clone()
		whole.givenAs(s.accepted)
		return nil, whole, nil
	})
	return err
}

// accept keeps a content as accepted. The caller holds the lock of the file.
func (a *Store) accept(ctx context.Context, file *File) error {
	content, err := file.authority().Encode()
	if err != nil {
		return err
	}
	return a.opts.Ledger.Accept(ctx, content)
}

// May says why nothing can be accepted now, for whoever would add an entry; nil if it can.
func (a *Store) May() error {
	if a.opts.Ledger == nil {
		return errors.New("nothing keeps what people accept")
	}
	return a.opts.Ledger.May()
}

// stricter are the settings of the file for an agent, no looser than what was accepted.
func (s *Snapshot) stricter(agent string) modes.Settings {
	return s.File.settings(agent).Stricter(s.accepted.settings(agent))
}

// listed are the entries for an agent that count.
func (s *Snapshot) listed(agent string) []Listed {
	return s.File.shared(s.accepted).allowlist(agent)
}

// Unaccepted are the entries that do not count, each with the agent under whose name it stands.
func (s *Snapshot) Unaccepted() (waiting []Listed) {
	for _, name := range slices.Sorted(maps.Keys(s.File.Agents)) {
		for _, e := range s.File.Agents[name].Allowlist {
			if e.ArgPattern == "" && !s.accepted.permits(name, &e) {
				waiting = append(waiting, Listed{e, name})
			}
		}
	}
	return waiting
}
