package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/toolward/toolward/server/api"
)

// Records searches the record, newest first; docs/api.md has the names of the filter. Each record is as it was written.
func (g *Gateway) Records(ctx context.Context, filter url.Values) ([]json.RawMessage, error) {
	return g.records(ctx, "/v1/audit", filter)
}

// Decisions are the latest decisions of the record.
func (g *Gateway) Decisions(ctx context.Context, limit int) ([]json.RawMessage, error) {
	return g.records(ctx, "/v1/decisions", url.Values{"limit": {strconv.Itoa(limit)}})
}

func (g *Gateway) records(ctx context.Context, path string, filter url.Values) ([]json.RawMessage, error) {
	var answer struct {
		Records []json.RawMessage `json:"records"`
	}
	err := g.get(ctx, path, filter, &answer)
	return answer.Records, err
}

// FollowRecords tells every record as it is written, until the stream ends, ctx ends (nil) or tell returns an error. tell must
// not keep what it gets.
func (g *Gateway) FollowRecords(ctx context.Context, tell func(record []byte) error) error {
	body, err := g.open(ctx, http.MethodGet, "/v1/audit/tail", nil, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxEvent)
	for lines.Scan() {
		if err := tell(lines.Bytes()); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case ctx.Err() != nil:
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return errStreamEnded()
}

// ExportRecords writes the whole record, as "json" or "csv".
func (g *Gateway) ExportRecords(ctx context.Context, format string, to io.Writer) error {
	body, err := g.open(ctx, http.MethodGet, "/v1/audit/export", url.Values{"format": {format}}, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(to, body)
	return err
}

// Sessions are the sessions that were heard of last.
func (g *Gateway) Sessions(ctx context.Context, limit int) (list api.Sessions, err error) {
	err = g.get(ctx, "/v1/sessions", url.Values{"limit": {strconv.Itoa(limit)}}, &list)
	return list, err
}
