package shell

import "strings"

// Kind says what a program does to the world.
type Kind string

// The kinds of effects. Whatever is not among them — output on the terminal, time, memory — is no effect.
const (
	Reads       Kind = "reads"       // a file or directory
	Writes      Kind = "writes"      // a file or directory: creates, changes or removes it
	Enters      Kind = "enters"      // works in a directory, or obeys a file: configuration and code that lie there
	Runs        Kind = "runs"        // another command, known as an argv
	Destroys    Kind = "destroys"    // loses work of which no copy is kept
	Evaluates   Kind = "evaluates"   // program text that was not understood as harmless
	Project     Kind = "project"     // code that the project itself defines: builds, tests, scripts
	Installs    Kind = "installs"    // code of others, by the name under which it is published
	Network     Kind = "network"     // talks to a host
	Configures  Kind = "config"      // changes what later runs do
	Environment Kind = "environment" // shows the environment, or settings, in which secrets are
	Signs       Kind = "signs"       // signs with a key of the person's, in their name
	Unknown     Kind = "unknown"     // an argument that is not understood
)

// Effect is one thing that a command does, by its arguments.
type Effect struct {
	Kind Kind     `json:"kind"`
	Path string   `json:"path,omitempty"` // of Reads, Writes, Enters, Destroys: as given, below Dir if relative
	Dir  string   `json:"dir,omitempty"`  // directory that the arguments name for relative paths; "": the command's own
	IfIn bool     `json:"ifIn,omitempty"` // only if what Path lies in is a directory: "cp a b" writes b/a if b is one
	Far  bool     `json:"far,omitempty"`  // symbolic links below Path are followed, wherever they lead
	Argv []string `json:"argv,omitempty"` // of Runs
	Open bool     `json:"open,omitempty"` // of Runs: names of files are added when it runs, at the end or where "{}" stands
	Text string   `json:"text,omitempty"` // of Evaluates; of Installs the package
	Lang string   `json:"lang,omitempty"` // of Evaluates: sh, awk, sed, …
	Host string   `json:"host,omitempty"` // of Network: "" if the arguments do not name it
	Via  string   `json:"via,omitempty"`  // the argument that says so

	// Remote is the repository that Network talks to: an address, or the name of a remote. One that the project does not name
	// itself is a stranger's.
	Remote string `json:"remote,omitempty"`

	// By is the program that does it, if that is another one within: pip, of "python -m pip".
	By string `json:"by,omitempty"`

	// Unless is a program of the project's own: if it is there, it is run and nothing is installed.
	Unless string `json:"unless,omitempty"`
}

// String tells people about the effect: "writes out.txt (-o)".
func (e Effect) String() string {
	text := string(e.Kind)
	for _, object := range []string{e.Path, strings.Join(e.Argv, " "), e.Host, e.Text} {
		if object != "" {
			text += " " + object
		}
	}
	if e.Far {
		text += " and where links below lead"
	}
	if e.Via != "" {
		text += " (" + e.Via + ")"
	}
	return text
}
