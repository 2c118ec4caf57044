package command

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// Evaluator judges commands by the settings of one agent on one host. It is immutable and safe for concurrent use.
type Evaluator struct {
	policy   Policy
	resolver *Resolver
	entries  entryIndex
	bins     safeBinSet
	trusted  []string // directories of safe bins, wrappers and shells
}

// New compiles policy. home is what "~/" means in patterns. Warnings tell people what is ignored or risky, and why.
func New(policy Policy, home string, resolver *Resolver) (e *Evaluator, warnings []SettingError, err error) {
	settings := Config{
		Preset: policy.Preset, Rules: policy.Rules,
		SafeBins: policy.SafeBins, SafeBinProfiles: policy.SafeBinProfiles, SafeBinTrustedDirs: policy.SafeBinTrustedDirs,
	}
	if wrong := settings.Check(); len(wrong) > 0 {
		return nil, nil, wrong[0]
	}
	bins, ignored := compileSafeBins(policy.SafeBins, policy.SafeBinProfiles)
	e = &Evaluator{policy: policy, resolver: resolver, bins: bins, trusted: []string{"/bin", "/usr/bin"}}
	for i, dir := range policy.SafeBinTrustedDirs {
		dir = path.Clean(dir)
		if node, err := resolver.files.Look(dir); err == nil && node.Mode&0o022 != 0 {
			ignored.add(fmt.Sprintf("exec.safeBinTrustedDirs[%d]", i), "others can write to %s: what they put there would be trusted", dir)
		}
		e.trusted = append(e.trusted, dir)
	}
	e.entries = compileEntries(policy.Entries, home, policy.FoldCase)
	return e, ignored, nil
}

// Places tells what paths are. *place.Classifier is one.
type Places interface {
	Resolve(workDir, asked string) (place.Resolved, error)
	InRoots(real string, write bool) bool
	Layout() place.Layout
}

// Request is a command and where it would run.
type Request struct {
	Command string
	Dir     string                           // working directory, absolute
	Getenv  func(name string) (string, bool) // the environment that the command would get, PATH and HOME included
	Level   toolward.Level
	Places  Places // nil: no file is in a place that is allowed

	// ByShell: somebody else's shell will run the text, with an environment of its own: the client behind a hook. What
	// that shell may read in another way than it is judged here asks.
	ByShell bool

	// Sandboxed: the command would run in a sandbox.
	Sandboxed bool
}

// Evaluate judges a command.
func (e *Evaluator) Evaluate(r *Request) *Assessment {
	v := evaluations.Get().(*evaluation)
	defer v.end()
	v.e, v.r, v.moment.r, v.out = e, r, e.resolver, &Assessment{Command: r.Command, Dir: r.Dir, Client: r.ByShell}
	v.places = r.Places
	if c, ok := r.Places.(*place.Classifier); ok {
		v.glance = c.Glance()
		v.places = &v.glance
	}
	v.where = Where{Dir: r.Dir, Home: v.getenv("HOME"), Path: v.getenv("PATH")}
	if r.Places != nil {
		v.where.Workspace = r.Places.Layout().Workspace
	}
	v.out.Obscured = shell.Obfuscations(r.Command)
	command, err := shell.Analyze(r.Command)
	if err == nil {
		v.out.OK, v.several = true, len(command.Segments) > 1
		v.out.Segments = v.command(command, []string{r.Dir}, 0)
	} else if refused, ok := errors.AsType[*shell.NotAnalysable](err); ok {
		v.out.Reason, v.out.Detail = refused.Reason, refused.Error()
	}
	v.out.Dangers = dangers(v.out, r.Command, &v.where)
	v.conclude()
	return v.out
}

// evaluations are used again: each is several hundred bytes that nobody keeps.
var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

func (v *evaluation) end() {
	v.glance.Close()
	words := v.words[:0]
	if clear(words[:cap(words)]); cap(words) > 256 {
		words = nil // few commands are that long
	}
	*v = evaluation{words: words}
	evaluations.Put(v)
}

// evaluation is one command being judged.
type evaluation struct {
	e      *Evaluator
	r      *Request
	moment moment
	places interface {
		Resolve(workDir, asked string) (place.Resolved, error)
	}
	glance place.Glance // what places is on the disk
	where  Where
	out    *Assessment

	locale bool // a shell around has a locale of its own: "?" may be a byte

	words []argument // room for those of the next segments

	several  bool // commands: an earlier one may change what a later one finds
	linked   bool // an earlier command may have made links
	written  bool // an earlier command may have written files
	unpacked bool // an earlier command may have put a repository together
	bounds   bounds
}

func (v *evaluation) getenv(name string) string {
	if v.r.Getenv == nil {
		return ""
	}
	value, _ := v.r.Getenv(name)
	return value
}

// real is the real path of anything; "" if there is nothing.
func (v *evaluation) real(p string) string { return v.moment.real(p, anything) }

// trusts reports whether a program lies in a trusted directory, by its name and by its real path: a link elsewhere
// gives it a name that its arguments do not fit.
func (v *evaluation) trusts(p *Program) bool {
	if !p.Found() || p.Hijack != "" {
		return false
	}
	return slices.Contains(v.e.trusted, path.Dir(p.Path)) && slices.Contains(v.e.trusted, path.Dir(p.Real))
}

// argument is one word of a command on its way to the program.
type argument struct {
	text   string
	expand bool // it was expanded from what is written
	glob   bool // from a pattern for files, or from braces
}

// room is for the words of one segment: those of all segments stand in few pieces of memory.
func (v *evaluation) room(n int) []argument {
	if n > cap(v.words)-len(v.words) {
		v.words = make([]argument, 0, max(n, 32))
	}
	at := len(v.words)
	v.words = v.words[:at+n]
	return v.words[at:at:len(v.words)]
}

// expanded gives the words of a segment as they would run.
func (v *evaluation) expanded(s *shell.Segment, seg *Segment) []argument {
	words := v.room(len(s.Words))
	if v.r.ByShell {
		v.foreignWords(s, seg)
	}
	if !slices.ContainsFunc(s.Words, func(w shell.Word) bool { return w.Expands() }) {
		for i := range s.Words {
			words = append(words, argument{text: s.Words[i].Text})
		}
		return words
	}
	if v.r.Getenv == nil {
		for i := range s.Words {
			w := &s.Words[i]
			words = append(words, argument{w.Text, w.Expands(), w.Glob || w.Brace})
			if w.Expands() {
				seg.object(Expansion, "it is not known what "+w.Source+" means")
			}
		}
		return words
	}
	if v.bounds.expanded > maxExpanded {
		return unexpanded(s, seg, words, "its words, and those before it, stand for more words than anybody reads")
	}
	got, err := s.Expand(shell.Surroundings{Dir: seg.Dir, Getenv: v.r.Getenv, ReadDir: v.readDir})
	if err != nil {
		return unexpanded(s, seg, words, err.Error())
	}
	v.bounds.expanded += len(got.Argv)
	seg.forms = formsOf(s.Words, got.Origin)
	for i, text := range got.Argv {
		w := &s.Words[got.Origin[i]]
		words = append(words, argument{text, w.Expands(), w.Glob || w.Brace})
		if w.Glob && len(seg.OtherDir) > 0 {
			seg.object(Expansion, "it depends on an earlier cd which files "+w.Source+" means")
		}
		if len(seg.OtherDir) > 0 && slices.Contains(w.Params(), "PWD") {
			seg.object(Expansion, "it depends on an earlier cd what $PWD is")
		}
		if w.Expands() {
			seg.Expanded = append(seg.Expanded, i)
		}
	}
	for _, doubt := range got.Doubts {
		seg.object(Expansion, doubtWords[doubt])
	}
	seg.Doubts = got.Doubts
	return words
}

// unexpanded gives the words as they are written, with the reason why they are not expanded.
func unexpanded(s *shell.Segment, seg *Segment, words []argument, why string) []argument {
	seg.object(Expansion, why)
	for i := range s.Words {
		words = append(words, argument{text: s.Words[i].Text, expand: true, glob: true})
	}
	return words
}

var doubtWords = map[shell.Doubt]string{
	shell.WordSplitting: "an unquoted parameter would be split into words or matched against files",
	shell.GlobOption:    "a file has a name that the program would take for an option",
	shell.OddPattern:    "a pattern means other files to other shells",
	shell.TooManyWords:  "a word stands for more words than anybody reads",
}

// object adds a reason why the segment is not satisfied.
func (s *Segment) object(code Code, detail string) {
	same := 0
	for i := range s.Asks {
		if s.Asks[i].Code == code {
			if same++; same == maxObjections || s.Asks[i].Detail == detail {
				return
			}
		}
	}
	s.Asks = append(s.Asks, Objection{code, detail})
}

// block makes the segment one that nothing can satisfy.
func (s *Segment) block(why string) {
	s.Blocked = why
	s.object(BlockedWrapper, why)
}
