// Package local asks the running gateway of this machine, over the socket in its home: the JSON API of docs/api.md. Who is at
// the socket is decided at its other end; a terminal that has signed in may answer approvals. What goes wrong is an [*Error], or an
// error of the context. Its methods return the forms of that API; those that callers must name have a name here.
package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/toolward/toolward/hostdaemon"
)

// Gateway is the gateway of this machine or, where it has none, of a home. It may run or not. Its methods may be called from
// any goroutine.
type Gateway struct {
	http *http.Client
	home string
}

// At is the gateway for a home. It is not asked yet.
func At(home string) *Gateway {
	g := &Gateway{home: home}
	g.http = &http.Client{Transport: &http.Transport{DialContext: g.dial, Proxy: nil}}
	return g
}

// dial connects to the daemon, and to nobody else. Whose it is it learns each time anew: a terminal console outlives an
// installation.
func (g *Gateway) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	daemon, err := hostdaemon.Of(g.home)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", daemon.Socket)
	if err != nil {
		return nil, err
	}
	if err := daemon.Check(conn.(*net.UnixConn)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// get asks for a JSON answer.
func (g *Gateway) get(ctx context.Context, path string, query url.Values, into any) error {
	return g.send(ctx, http.MethodGet, path, query, nil, into)
}

// post sends JSON and reads a JSON answer.
func (g *Gateway) post(ctx context.Context, path string, body, into any) error {
	return g.send(ctx, http.MethodPost, path, nil, body, into)
}

// send sends a request, with a JSON body if there is one, and reads a JSON answer; into nil reads none. What goes wrong is an
// [*Error], or an error of ctx.
func (g *Gateway) send(ctx context.Context, method, path string, query url.Values, body, into any) error {
	answer, err := g.open(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if into == nil {
		_, err = io.Copy(io.Discard, answer)
		return err
	}
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("answer of the daemon: %w", err)
	}
	return nil
}

// open sends a request and returns the body of a good answer, which the caller closes.
func (g *Gateway) open(ctx context.Context, method, path string, query url.Values, body any) (io.ReadCloser, error) {
	request, err := newRequest(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	response, err := g.http.Do(request)
	if err != nil {
		return nil, g.absent(err)
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, refused(response)
	}
	return response.Body, nil
}

func newRequest(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	address := "http://toolward" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err == nil && body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}
