package local

import (
	"context"
	"net/url"
	"strconv"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/api"
)

const undoRoute = "/v1/undo"

// What can be taken back, what to take back of it, and what became of that.
type (
	UndoCall    = desk.UndoCall
	UndoRequest = desk.UndoRequest
	UndoAnswer  = desk.UndoAnswer
)

// UndoCalls lists the latest calls that can be taken back; with a session its own.
func (g *Gateway) UndoCalls(ctx context.Context, session string, limit int) ([]UndoCall, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if session != "" {
		query.Set("session", session)
	}
	var list api.UndoList
	err := g.get(ctx, undoRoute, query, &list)
	return list.Calls, err
}

// UndoCall is one of them, with the differences.
func (g *Gateway) UndoCall(ctx context.Context, id string) (call UndoCall, err error) {
	err = g.get(ctx, undoRoute+"/"+url.PathEscape(id), nil, &call)
	return call, err
}

// TakeBack takes calls back.
func (g *Gateway) TakeBack(ctx context.Context, request UndoRequest) (answer UndoAnswer, err error) {
	err = g.post(ctx, undoRoute, request, &answer)
	return answer, err
}
