package command

import (
	"slices"

	"github.com/toolward/toolward/shell"
)

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
		if !v.r.Enforced {
			otherWords(s, seg)
		}
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
				seg.found(Expansion, "it is not known what "+w.Source+" means")
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
			seg.found(Expansion, "it depends on an earlier cd which files "+w.Source+" means")
		}
		if len(seg.OtherDir) > 0 && slices.Contains(w.Params(), "PWD") {
			seg.found(Expansion, "it depends on an earlier cd what $PWD is")
		}
		if w.Expands() {
			seg.Expanded = append(seg.Expanded, i)
		}
	}
	for _, finding := range got.Findings {
		seg.found(Expansion, expansionWords[finding])
	}
	seg.Findings = got.Findings
	return words
}

// unexpanded gives the words as they are written, with the reason why they are not expanded.
func unexpanded(s *shell.Segment, seg *Segment, words []argument, why string) []argument {
	seg.found(Expansion, why)
	for i := range s.Words {
		words = append(words, argument{text: s.Words[i].Text, expand: true, glob: true})
	}
	return words
}

var expansionWords = map[shell.Finding]string{
	shell.WordSplitting: "an unquoted parameter would be split into words or matched against files",
	shell.GlobOption:    "a file has a name that the program would take for an option",
	shell.OddPattern:    "a pattern means other files to other shells",
	shell.TooManyWords:  "a word stands for more words than anybody reads",
}

// formsOf finds the words that were expanded. origin tells for every word that runs which one it comes from.
func formsOf(words []shell.Word, origin []int) (forms []wordForms) {
	at := 0
	for i := range words {
		n := 0
		for at+n < len(origin) && origin[at+n] == i {
			n++
		}
		if words[i].Expands() {
			forms = append(forms, wordForms{words[i].Source, at, n})
		}
		at += n
	}
	return forms
}

// argvOf gives the texts of words, in the memory of what is written if they are the same: nobody changes either.
func argvOf(words []argument, written []string) []string {
	if len(words) == len(written) && !slices.ContainsFunc(words, func(w argument) bool { return w.expand }) {
		return written
	}
	argv := make([]string, len(words))
	for i := range words {
		argv[i] = words[i].text
	}
	return argv
}
