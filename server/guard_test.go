package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolward/toolward/server/door"
)

func TestHostNamesAccepts(t *testing.T) {
	names, err := newHostNames([]string{"gate.example.org", "10.0.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{
		"127.0.0.1:7411":              true,
		"127.0.0.1":                   true,
		"127.8.9.10:7411":             true,
		"localhost:7411":              true,
		"LOCALHOST":                   true,
		"localhost.":                  true,
		"[::1]:7411":                  true,
		"[::1]":                       true,
		"gate.example.org":            true,
		"Gate.Example.org:8443":       true,
		"10.0.0.5:7411":               true,
		"":                            false,
		"evil.example:7411":           false,
		"127.0.0.1.evil.example:7411": false,
		"localhost.evil.example":      false,
		"evil.localhost:7411":         false,
		"0.0.0.0:7411":                false,
		"[::]:7411":                   false,
		"[::ffff:127.0.0.1]:7411":     false,
		"[::1%25lo]:7411":             false,
		"10.0.0.6:7411":               false,
		"localhost:7411@evil.example": false,
		"localhost:74x1":              false,
		"2130706433:7411":             false,
		"127.1:7411":                  false,
		"sub.gate.example.org":        false,
	}
	for host, want := range tests {
		if got := names.accepts(host); got != want {
			t.Errorf("accepts(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestHostNamesRefusesBadConfiguration(t *testing.T) {
	for _, name := range []string{"", "*.example.org", "http://gate", "gate:7411", "a b", "user@gate"} {
		if _, err := newHostNames([]string{name}); err == nil {
			t.Errorf("host name %q was accepted", name)
		}
	}
}

func TestGuardMatrix(t *testing.T) {
	names, err := newHostNames(nil)
	if err != nil {
		t.Fatal(err)
	}
	reached := false
	server := httptest.NewServer(guardTCP(names, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached = true
		io.Copy(io.Discard, r.Body)
	})))
	defer server.Close()
	here := server.Listener.Addr().String()

	tests := []struct {
		name   string
		method string
		host   string
		header map[string]string
		status int
	}{
		{"plain read", "GET", here, nil, 200},
		{"read by name", "GET", "localhost:1", nil, 200},
		{"rebound name", "GET", "evil.example:7411", nil, 421},
		{"rebound name with own origin", "POST", "evil.example:7411", map[string]string{"Origin": "http://evil.example:7411"}, 421},
		{"same origin post", "POST", here, map[string]string{"Origin": "http://" + here, "Sec-Fetch-Site": "same-origin"}, 200},
		{"post without browser headers", "POST", here, nil, 200},
		{"typed address", "GET", here, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"cross-site post", "POST", here, map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403},
		{"same-site post from another port", "POST", here, map[string]string{"Origin": "http://127.0.0.1:3000", "Sec-Fetch-Site": "same-site"}, 403},
		{"same-site post without origin", "POST", here, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"cross-site put", "PUT", here, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"cross-origin read", "GET", here, map[string]string{"Origin": "http://127.0.0.1:3000"}, 403},
		{"opaque origin", "POST", here, map[string]string{"Origin": "null"}, 403},
		{"origin with a path", "POST", here, map[string]string{"Origin": "http://" + here + "/x"}, 403},
		{"method override", "POST", here, map[string]string{"X-HTTP-Method-Override": "DELETE"}, 400},
		{"rewritten target", "GET", here, map[string]string{"X-Original-URL": "/admin"}, 400},
		{"trace", "TRACE", here, nil, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reached = false
			req, err := http.NewRequest(tt.method, server.URL+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			for k, v := range tt.header {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tt.status || reached != (tt.status == 200) {
				t.Errorf("status %d, handler reached %v; want %d", resp.StatusCode, reached, tt.status)
			}
			if resp.Header.Get("Content-Security-Policy") != contentPolicy || resp.Header.Get("Referrer-Policy") != "same-origin" {
				t.Errorf("safe headers are missing: %v", resp.Header)
			}
		})
	}
}

func TestGuardOversizedBodies(t *testing.T) {
	names, _ := newHostNames(nil)
	var readErr error
	server := httptest.NewServer(guardTCP(names, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, readErr = io.Copy(io.Discard, r.Body); readErr != nil {
			problemStatus := door.ProblemOf(readErr).Status
			w.WriteHeader(problemStatus)
		}
	})))
	defer server.Close()
	tests := []struct {
		name   string
		path   string
		body   io.Reader
		status int
	}{
		{"at the limit", "/x", strings.NewReader(strings.Repeat("a", maxBody)), 200},
		{"declared too long", "/x", strings.NewReader(strings.Repeat("a", maxBody+1)), 413},
		{"chunked too long", "/x", io.MultiReader(strings.NewReader(strings.Repeat("a", maxBody)), strings.NewReader("b")), 413},
		{"mcp bounds its own", "/mcp", strings.NewReader(strings.Repeat("a", maxBody+1)), 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := http.Post(server.URL+tt.path, "text/plain", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.status)
			}
		})
	}
}

// TestSmugglingOddities sends raw bytes that a front proxy and this server might read in two ways.
func TestSmugglingOddities(t *testing.T) {
	names, _ := newHostNames(nil)
	server := httptest.NewServer(guardTCP(names, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "reached")
	})))
	defer server.Close()
	here := server.Listener.Addr().String()
	tests := []struct{ name, raw string }{
		{"two lengths", "POST / HTTP/1.1\r\nHost: " + here + "\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"},
		{"chunked with a twist", "POST / HTTP/1.1\r\nHost: " + here + "\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: " + here + "\r\nHost: evil.example\r\n\r\n"},
		{"no host", "GET / HTTP/1.1\r\n\r\n"},
		{"absolute target of another host", "GET http://evil.example/ HTTP/1.1\r\nHost: " + here + "\r\n\r\n"},
		{"space before colon", "GET / HTTP/1.1\r\nHost: " + here + "\r\nOrigin : http://evil.example\r\n\r\n"},
		{"folded header", "GET / HTTP/1.1\r\nHost: " + here + "\r\nX-A: b\r\n c\r\n\tOrigin: x\r\nBad Name: y\r\n\r\n"},
		{"connect", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n"},
		{"two origins", "GET / HTTP/1.1\r\nHost: " + here + "\r\nOrigin: http://" + here + "\r\nOrigin: http://evil.example\r\n\r\n"},
		{"NUL in the path", "GET /%00 HTTP/1.1\r\nHost: " + here + "\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", here)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, tt.raw)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // closed without an answer: refused
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode < 400 || strings.Contains(string(body), "reached") {
				t.Errorf("answered %d %q", resp.StatusCode, body)
			}
		})
	}
}
