package toolward

// CommandAnalysis is what is known about the command of a call, and what the allowlist of the host that runs it says. It
// is found with the facts, so that decisions, records and replays are about the same analysis. The zero value is a
// command that nobody understood.
type CommandAnalysis struct {
	Understood bool     // every program that it starts, and what each would do, is known
	Covered    bool     // the allowlist, a rule or a preset covers all of it
	Reads      bool     // it is understood, and writes no file: nothing is kept for taking it back
	Findings   []string // reasons for a question that no setting switches off: heredoc, inline-eval, obfuscation, rule
	Forbidden  string   // why a rule of the operator refuses it in every mode

	// Security ("deny", "allowlist", "full") and Ask ("always", "on-miss", "off") are what the host's own file and the
	// call say about this command; "" is no word. They only tighten what the configuration says.
	Security, Ask string
	// Unanswered says that the host's file lets a covered command run if nobody answers its question.
	Unanswered bool

	// Contained says that it would run where nothing but the session's own is within its reach, so that how tense the session is
	// changes nothing about what it may touch; see modes.Tension.
	Contained bool

	// Enforced is the text of what runs if nobody has to be asked: absolute programs, every word quoted, nothing left to a
	// shell to find or to expand. "" if it cannot be given, or if the command runs as it was written.
	Enforced string

	// Always is what an "always" would add to the allowlist; without any it is not offered.
	Always []CommandEntry
}

// CommandEntry lets a program run without a question.
type CommandEntry struct {
	Pattern string   `json:"pattern"`        // absolute path of the program
	Effects []string `json:"effects"`        // what it may do by its arguments: read, write, network
	Argv    []string `json:"argv,omitempty"` // if given: exactly these words and no others
	// GivenBy is what let the person in who gave it, if that can be taken away: see [Grant.GivenBy] of package approval.
	GivenBy string `json:"givenBy,omitempty"`
	Host    Host   `json:"host,omitempty"` // gateway: it runs on the machine also where other commands run in a sandbox
}
