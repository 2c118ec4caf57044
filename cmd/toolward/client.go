package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolward/toolward/bridge/hookclient"
	"github.com/toolward/toolward/server/door"
)

// daemonClient talks to the daemon over its local socket.
type daemonClient struct {
	http   *http.Client
	socket string
}

func (inv *invocation) daemon() *daemonClient {
	socket := filepath.Join(inv.home, hookclient.SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
	}
	return &daemonClient{&http.Client{Transport: &http.Transport{DialContext: dial, Proxy: nil}}, socket}
}

// get asks for a JSON answer.
func (d *daemonClient) get(ctx context.Context, path string, query url.Values, into any) error {
	return d.send(ctx, http.MethodGet, path, query, nil, into)
}

// post sends JSON and reads a JSON answer.
func (d *daemonClient) post(ctx context.Context, path string, body, into any) error {
	return d.send(ctx, http.MethodPost, path, nil, body, into)
}

func (d *daemonClient) send(ctx context.Context, method, path string, query url.Values, body, into any) error {
	answer, err := d.open(ctx, method, path, query, body)
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

// open sends a request and returns the body of a good answer.
func (d *daemonClient) open(ctx context.Context, method, path string, query url.Values, body any) (io.ReadCloser, error) {
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
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := d.http.Do(request)
	if err != nil {
		return nil, d.absent(err)
	}
	if response.StatusCode >= 300 {
		defer response.Body.Close()
		return nil, problemOf(response)
	}
	return response.Body, nil
}

func (d *daemonClient) absent(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
		err = fmt.Errorf("no gateway answers at %s", d.socket)
	}
	return &exitErr{exitNoDaemon, err, "start it with: toolward up"}
}

// problemOf reads the daemon's own words.
func problemOf(response *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	var p door.Problem
	if json.Unmarshal(raw, &p) != nil || p.Message == "" {
		p.Message = strings.TrimSpace(string(raw))
	}
	code := exitError
	if response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized {
		code = exitNotPerson
		if p.Hint == "" {
			p.Hint = "sign this terminal in with: toolward login"
		}
	}
	return &exitErr{code, errors.New(p.Message), p.Hint}
}

// follow reads server-sent events until the stream or the context ends.
func (d *daemonClient) follow(ctx context.Context, path string, query url.Values, event func(name string, data []byte) error) error {
	body, err := d.open(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	scanner := bufio.NewScanner(body)
	scanner.Buffer(make([]byte, 64<<10), 16<<20)
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

func errStreamEnded() error {
	return &exitErr{exitNoDaemon, errors.New("the gateway ended the stream"), "is it still running? toolward doctor"}
}
