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
	"path/filepath"
	"time"

	"github.com/toolward/toolward/bridge/hookclient"
)

// Gateway is the gateway of a home, which may run or not. Its methods may be called from any goroutine.
type Gateway struct {
	http   *http.Client
	socket string
}

// At is the gateway of a home. It is not asked yet.
func At(home string) *Gateway {
	socket := filepath.Join(home, hookclient.SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
	}
	return &Gateway{&http.Client{Transport: &http.Transport{DialContext: dial, Proxy: nil}}, socket}
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
		return nil, absent(g.socket, err)
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
