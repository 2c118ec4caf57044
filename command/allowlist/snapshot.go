package allowlist

import (
	"cmp"

	"github.com/toolward/toolward/modes"
)

// Snapshot is exec-approvals.json as it was at one moment. It is never changed.
type Snapshot struct {
	Path   string
	Exists bool
	Hash   string // of the exact bytes, lower-case hex SHA-256
	File   *File  // never nil; empty if the file does not exist or is corrupt
	// Corrupt says why the file cannot be used. It refuses every command, and nothing but a person replaces it.
	Corrupt  error
	Problems []string // what was left out of the file

	accepted *File // what a person accepted; never nil
}

// Modes are those in force for an agent ("" is main) where the configuration meets the file.
func (s *Snapshot) Modes(config modes.Settings, agent string) modes.Modes {
	return modes.Merge(config, s.Settings(agent))
}

// Settings are what the file says about an agent ("" is main), no looser than a person accepted.
func (s *Snapshot) Settings(agent string) modes.Settings {
	if s.Corrupt != nil {
		return modes.Closed()
	}
	return s.stricter(cmp.Or(agent, MainAgent))
}

// Allowlist is what an agent ("" is main) may run without a question: what holds for every agent first. A corrupt file
// allows nothing, and neither does an entry that no person accepted.
func (s *Snapshot) Allowlist(agent string) []Listed {
	if s.Corrupt != nil {
		return nil
	}
	return s.listed(cmp.Or(agent, MainAgent))
}
