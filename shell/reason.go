package shell

import "fmt"

// Reason says in one word why a command line was not understood.
type Reason string

// The reasons, in the order in which whole-text rules are tried; those of constructs come as they stand in the text.
const (
	LineContinuation    Reason = "line-continuation"    // backslash before a line break, or at the end
	Empty               Reason = "empty"                // nothing to run
	TooLong             Reason = "too-long"             // more than 65,536 bytes
	ControlCharacter    Reason = "control-char"         // characters that people do not see, or bytes that are no text
	TooComplex          Reason = "too-complex"          // nested too deeply, or too many commands
	ParseError          Reason = "parse-error"          // not a command line
	Newline             Reason = "newline"              // a line break between commands
	Background          Reason = "background"           // &
	PipeStderr          Reason = "pipe-stderr"          // |&
	Compound            Reason = "compound"             // subshells, groups, loops, conditions, functions, declarations
	Assignment          Reason = "assignment"           // NAME=value
	CommandSubstitution Reason = "command-substitution" // $( ) and backticks
	ProcessSubstitution Reason = "process-substitution" // <( ) and >( )
	Arithmetic          Reason = "arithmetic"           // $(( ))
	ParameterExpansion  Reason = "parameter-expansion"  // anything but $NAME and ${NAME}, and names that shells give values
	DollarQuote         Reason = "dollar-quote"         // $'…' and $"…"
	ExtendedGlob        Reason = "extglob"              // ?( ) *( ) +( ) @( ) !( )
	UserHome            Reason = "user-home"            // ~user, ~+ and ~-, and ~ within a word such as a=~/b
	Redirection         Reason = "redirection"          // of other descriptors, or to what is not one literal file
	HeredocExpansion    Reason = "heredoc-expansion"    // a here-document that a shell would evaluate
	DynamicExecutable   Reason = "dynamic-executable"   // the program is known only when it runs
)

// words tells people what a reason means.
var words = map[Reason]string{
	LineContinuation:    "a line is continued with a backslash",
	Empty:               "there is nothing to run",
	TooLong:             "it is longer than 64 KiB",
	ControlCharacter:    "it contains characters that are not shown",
	TooComplex:          "it is nested too deeply or has too many commands",
	ParseError:          "it is not a complete command line",
	Newline:             "it has several lines of commands",
	Background:          "it starts something in the background",
	PipeStderr:          "it pipes errors with |&",
	Compound:            "it uses a subshell, group, loop, condition, function or declaration",
	Assignment:          "it sets a variable that can change what programs do",
	CommandSubstitution: "it puts the output of a command into another",
	ProcessSubstitution: "it puts a command in the place of a file",
	Arithmetic:          "it computes",
	ParameterExpansion:  "it uses a parameter in a way that is not plain $NAME, or one that the shell itself gives a value",
	DollarQuote:         "it uses $'…' or $\"…\"",
	ExtendedGlob:        "it uses an extended pattern",
	UserHome:            "it uses ~ in another way than ~/",
	Redirection:         "it redirects other descriptors, or to what is not one literal file",
	HeredocExpansion:    "it has a here-document that a shell would evaluate",
	DynamicExecutable:   "its program is known only when it runs",
}

// NotAnalysable is the error of a command line that was not understood.
type NotAnalysable struct {
	Reason Reason
	Offset int    // byte in the text where the construct begins; 0 for rules about the whole text
	Detail string // of the parser, for ParseError
}

func (e *NotAnalysable) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("%s: %s", words[e.Reason], e.Detail)
	}
	return words[e.Reason]
}
