package local

import (
	"bufio"
	"context"
	"net/http"
	"strings"
)

// maxEvent is how long one event may be, in bytes.
const maxEvent = 16 << 20

// follow reads server-sent events until the stream ends, ctx ends (nil) or event returns an error.
func (g *Gateway) follow(ctx context.Context, path string, event func(name string, data []byte) error) error {
	body, err := g.open(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	scanner := bufio.NewScanner(body)
	scanner.Buffer(make([]byte, 64<<10), maxEvent)
	name, data := "", []byte(nil)
	for scanner.Scan() {
		line := scanner.Text()
		switch {
		case line == "":
			if data != nil {
				if err := event(name, data); err != nil {
					return err
				}
			}
			name, data = "", nil
		case strings.HasPrefix(line, "event:"):
			name = strings.TrimSpace(line[len("event:"):])
		case strings.HasPrefix(line, "data:"):
			data = append(data, strings.TrimPrefix(line[len("data:"):], " ")...)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	return errStreamEnded()
}
