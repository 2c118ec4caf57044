package api

import (
	"context"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/session"
)

// Explainer says what would happen to a call. The gateway implements it.
type Explainer interface {
	Explain(context.Context, toolward.Call, toolward.ExplainOptions) toolward.Trace
}

// Levels is how tense sessions are. The session package's tracker implements it.
type Levels interface {
	// Overview tells a session's level and what it comes from.
	Overview(context.Context, toolward.SessionKey) (session.Overview, error)
	// Recent lists the sessions that changed last, newest first.
	Recent(ctx context.Context, limit int) ([]session.Overview, error)
}

// Configuration is the configuration file as people meet it here.
type Configuration interface {
	// PendingChange returns the changed file that waits for a person; false if none does.
	PendingChange() (ConfigChange, bool)
	// ApplyChange puts the waiting change in force if it still has this revision, and records who said so.
	ApplyChange(ctx context.Context, revision, by string) error
}

// ConfigChange is a changed configuration file that is sound and waits for a person.
type ConfigChange struct {
	File     string `json:"file"`
	Revision string `json:"revision"` // names exactly this content
	Diff     string `json:"diff"`     // unified
	// Changes are the settings that differ, in words: what counts in the end, whatever the file looks like.
	Changes []string `json:"changes"`
}
