package binding

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
	"github.com/toolward/toolward/shell/profiles"
)

// What a person approves is worth what the files are worth that a program obeys: a script, statements for a database, a list of
// containers. Which word of a command names such a file depends on the options of many programs and versions. So it is turned
// round: every file that the words could name is bound, unless all that the program does is known and its files are nothing but
// data to it. An extra binding only refuses more.

// loadedFiles lists the files that a command loads or runs, as far as its words tell, and says what cannot be held. real is the
// program behind all links. A file that appears later adds a binding, which is a difference too.
func loadedFiles(c *BindableCommand, real string) (files []operand, left []string) {
	s := newSearch(c.Dir)
	for _, dir := range c.OtherDirs {
		s.base(dir)
	}
	s.command(c.Argv, real, c.Dir, 0)
	if obeyedBy(c.Argv, real).use == asCode {
		for _, name := range c.Inputs {
			s.file(-1, name)
		}
		for _, argv := range c.Fed {
			s.words(argv, false) // cat x.sql | psql
		}
	}
	return s.files, s.left
}

// namedFiles lists the files that a text names which only a shell understands: nobody knows what becomes of which.
func namedFiles(text, dir string) (files []operand, left []string) {
	s := newSearch(dir)
	words := pieces(text)
	for _, word := range words {
		s.name(-1, word)
		if strings.ContainsAny(word, "*?[") {
			s.leave("files that a pattern matches")
		}
	}
	s.guess(words)
	return s.files, s.left
}

// use says what files are to a program.
type use uint8

const (
	asData    use = iota // they are read, copied, removed
	asProject            // they may be code of the project, or settings for it
	asCode               // anything: a statement, a program, a list of what to run
)

// obeyed is what a program does by its arguments, and what it takes files for.
type obeyed struct {
	use     use
	effects []shell.Effect
}

// takesOrders are programs for which a file says which other files they write.
var takesOrders = strings.Fields("patch gpatch ed red tar gtar bsdtar unzip cpio pax")

// severalInOne are programs that are what they are called by.
var severalInOne = strings.Fields("busybox toybox coreutils rustup")

// obeyedBy looks at a program by its name and by that of the file behind it: a link "cat" may lead to a shell.
func obeyedBy(argv []string, real string) obeyed {
	u := shell.Unwrap(argv)
	if u.Blocked != "" || u.Program >= len(argv) {
		return obeyed{use: asCode}
	}
	args, name := argv[u.Program+1:], shell.ProgramName(argv[u.Program])
	effects, known := profiles.Effects(name, args)
	o := obeyed{useOf(effects, known), effects}
	if slices.Contains(takesOrders, name) {
		o.use = max(o.use, asProject)
	}
	behind := shell.ProgramName(real)
	if u.Program == 0 && real != "" && profiles.Of(behind) != profiles.Of(name) && !slices.Contains(severalInOne, behind) {
		effects, known := profiles.Effects(behind, args)
		o.use = max(o.use, useOf(effects, known))
		o.effects = append(o.effects, effects...)
	}
	return o
}

// useOf tells it by what the program does. What is sent away was seen as it was, so that is no mere data either.
func useOf(effects []shell.Effect, known bool) use {
	if !known {
		return asCode
	}
	most, reads, sends := asData, false, false
	for _, e := range effects {
		switch e.Kind {
		case shell.Reads:
			reads = true
		case shell.Network:
			sends = true
		case shell.Writes, shell.Enters, shell.Destroys, shell.Environment:
		case shell.Project, shell.Configures:
			most = max(most, asProject)
		default:
			return asCode
		}
	}
	if reads && sends {
		return max(most, asProject)
	}
	return most
}

// mostCarried is how many programs may start each other in one command.
const mostCarried = 8

// command looks through the words of a command and of those that it runs.
func (s *search) command(argv []string, real, dir string, depth int) {
	o := obeyedBy(argv, real)
	if o.use != asData {
		s.words(argv, o.use == asCode)
	}
	for _, e := range o.effects {
		at := below(dir, e.Dir)
		switch e.Kind {
		case shell.Enters, shell.Evaluates:
			s.add(slices.Index(argv, e.Path), e.Path, at)
		case shell.Project:
			s.obeyedIn(at)
		case shell.Runs:
			if e.Open {
				s.leave("files whose names it gets when it runs")
			}
			if len(e.Argv) > 0 && depth < mostCarried {
				if strings.Contains(e.Argv[0], "/") {
					s.add(slices.Index(argv, e.Argv[0]), e.Argv[0], at)
				}
				s.command(e.Argv, "", at, depth+1)
			}
		}
	}
}

// mostGuessed is how many words of a command of the project are taken for names of modules. Longer ones list files.
const mostGuessed = 16

// words looks through the words of a command: whole words, values behind "=" and of "-Ovalue", and names that a program makes of
// them. With thorough also through what they are made of.
func (s *search) words(argv []string, thorough bool) {
	words := argv[min(1, len(argv)):]
	for i, word := range words {
		s.name(i+1, word)
	}
	if !thorough {
		s.guess(words[:min(len(words), mostGuessed)])
		return
	}
	var parts []string
	for _, word := range words {
		parts = append(parts, pieces(word)...)
	}
	for _, part := range parts {
		s.name(-1, part)
	}
	s.guess(parts)
}
