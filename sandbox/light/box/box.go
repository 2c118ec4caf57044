// Package box is the first process of a light confinement: it hides and guards what commands on the machine have no
// business with, and starts the programs that the gateway has judged.
//
// It runs as toolward-inside, in namespaces of its own that are made when it is started, and does what one gateway tells
// it over one socket: [Setup] once, then a [Launch] for every program. It reports every end. When the gateway hangs up,
// it ends, and with it all that it has started. It reads nothing that those programs write.
package box

import (
	"errors"
	"strconv"
	"strings"
)

// Argument is what makes toolward-inside a box.
const Argument = "light"

// Setup is what the box makes before anything starts in it. All paths are real ones.
type Setup struct {
	Namespaces bool // it was started in mount, process and IPC namespaces of its own
	Root       bool // it is the machine's root, in no user namespace
	Landlock   int  // version that the kernel has; 0: none

	Hide  []string // become empty; the first is a directory that is there
	Fresh []string // directories that become empty, and can be written to
	Read  []string // cannot be written to
	Pin   []string // can be written to, and not renamed
	Show  []string // stay as they are, below whatever becomes something else
}

// Launch is a program to start. Its files come with it: three streams, the directory, and the program if it is executed
// as the file that was opened.
type Launch struct {
	Path, Dir string
	Open      bool // the program comes with it
	Session   bool // it leads a session
	Terminal  int  // the stream that is its terminal; -1: none
	Argv, Env []string
}

// The messages to the box, by their first byte. Setup and launch come as text in memory, as the first descriptor.
const (
	MessageSetup  = 's'
	MessageLaunch = 'l'
	MessageSignal = 'k' // and the number
)

// The messages of the box.
const (
	MessageDone    = 'd' // the setup is made
	MessageFailed  = 'f' // it is not; the number of the error, a space and a text follow
	MessageStarted = 'p' // the process id inside; a descriptor of the process comes with it
	MessageRefused = 'r' // the number of the error with which the system did not start a program
	MessageEnded   = 'e' // the process id inside, a space and the wait status
)

var errText = errors.New("the message is damaged")

// text is a list of strings without NUL characters, each with one behind it.
type text struct{ strings.Builder }

func (t *text) add(s string) { t.WriteString(s); t.WriteByte(0) }

func (t *text) number(n int) { t.add(strconv.Itoa(n)) }

func (t *text) truth(b bool) { t.add(strconv.FormatBool(b)) }

func (t *text) list(list []string) {
	t.number(len(list))
	for _, s := range list {
		t.add(s)
	}
}

// reader reads what text has written. After an error everything that it reads is empty.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) next() string {
	s, rest, ok := strings.Cut(r.rest, "\x00")
	if !ok {
		r.bad, r.rest = true, ""
		return ""
	}
	r.rest = rest
	return s
}

func (r *reader) number() int {
	n, err := strconv.Atoi(r.next())
	r.bad = r.bad || err != nil
	return n
}

func (r *reader) truth() bool { return r.next() == "true" }

func (r *reader) list() []string {
	n := r.number()
	if n < 0 || n > len(r.rest) {
		r.bad = true
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.next()
	}
	return list
}

func (r *reader) err() error {
	if r.bad || r.rest != "" {
		return errText
	}
	return nil
}

// Encode writes a setup.
func (s *Setup) Encode() string {
	var t text
	t.truth(s.Namespaces)
	t.truth(s.Root)
	t.number(s.Landlock)
	for _, list := range [][]string{s.Hide, s.Fresh, s.Read, s.Pin, s.Show} {
		t.list(list)
	}
	return t.String()
}

// DecodeSetup reads a setup.
func DecodeSetup(data string) (*Setup, error) {
	r := reader{rest: data}
	s := &Setup{Namespaces: r.truth(), Root: r.truth(), Landlock: r.number()}
	for _, list := range []*[]string{&s.Hide, &s.Fresh, &s.Read, &s.Pin, &s.Show} {
		*list = r.list()
	}
	return s, r.err()
}

// Encode writes a launch. No string in it may have a NUL character.
func (l *Launch) Encode() string {
	var t text
	t.add(l.Path)
	t.add(l.Dir)
	t.truth(l.Open)
	t.truth(l.Session)
	t.number(l.Terminal)
	t.list(l.Argv)
	t.list(l.Env)
	return t.String()
}

// DecodeLaunch reads a launch.
func DecodeLaunch(data string) (*Launch, error) {
	r := reader{rest: data}
	l := &Launch{Path: r.next(), Dir: r.next(), Open: r.truth(), Session: r.truth(), Terminal: r.number(), Argv: r.list(), Env: r.list()}
	return l, r.err()
}
