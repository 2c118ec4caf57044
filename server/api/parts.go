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
