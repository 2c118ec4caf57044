package netguard

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// readHTTP reads "CONNECT host:port" or a plain request for an http URL.
func (c *client) readHTTP() error {
	c.accept = func() error { return nil }
	c.refuse = func(e *Error) { c.answer(statusOf(e), e.words()) }
	request, err := http.ReadRequest(c.in)
	if err != nil {
		c.refuse(&Error{Code: CodeProxyRequest})
		return err
	}
	if request.Method == http.MethodConnect {
		return c.readConnect(request)
	}
	return c.readPlain(request)
}

func (c *client) readConnect(request *http.Request) error {
	name, port, ok := splitPort(request.RequestURI, "")
	if !ok || port == 0 || strings.ContainsAny(request.RequestURI, "@/?#\\") {
		c.refuse(&Error{Code: CodeProxyRequest})
		return &Error{Code: CodeProxyRequest}
	}
	c.host, c.port = name, port
	c.accept = func() error {
		_, err := io.WriteString(c.Conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		return err
	}
	return nil
}

// readPlain takes one request; the connection ends with its answer, so that a second request cannot go to a host that
// nobody decided about.
func (c *client) readPlain(request *http.Request) error {
	refuse := func() error {
		e := &Error{Code: CodeProxyRequest}
		c.refuse(e)
		return e
	}
	if request.URL.Scheme != "http" || request.URL.Host == "" || request.URL.User != nil {
		return refuse()
	}
	name, port, ok := splitPort(request.URL.Host, "http")
	if !ok {
		return refuse()
	}
	for _, header := range []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		request.Header.Del(header)
	}
	if _, own := request.Header["User-Agent"]; !own {
		request.Header["User-Agent"] = nil // the library would add its own
	}
	request.Close = true
	if h, refused := normalize(name); refused == nil {
		// In the one form that is decided about: a server may take another spelling for another site.
		request.URL.Host = bracketed(h.text) + strings.TrimPrefix(request.URL.Host, name)
	}
	request.Host = request.URL.Host // a Host header that names another site than the one decided about
	c.host, c.port = name, port
	return c.keepRequest(request)
}

// maxPlainBody is how much of a plain request's body is taken; larger ones need CONNECT.
const maxPlainBody = 8 << 20

func (c *client) keepRequest(request *http.Request) error {
	var raw bytes.Buffer
	c.in.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(c.buffered())), io.LimitReader(c.Conn, maxPlainBody)))
	if err := request.Write(&raw); err != nil {
		c.refuse(&Error{Code: CodeHeaderTooLarge})
		return err
	}
	c.first = raw.Bytes()
	return nil
}

func (c *client) buffered() []byte {
	held, _ := c.in.Peek(c.in.Buffered())
	return held
}

// answer says it twice: most programs show of a proxy's answer only its first line.
func (c *client) answer(status int, text string) {
	text = "toolward: " + text
	line := strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, text)
	fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, line, len(text)+1, text)
}

// words say which host was not reached, why, and what can be done about it.
func (e *Error) words() string {
	switch e.Code {
	case CodeProxyRequest:
		return "this is a proxy: send CONNECT host:port, or one plain request for an http URL"
	case CodeHeaderTooLarge:
		return "the request is too large for a proxy: send it through CONNECT"
	}
	return cmp.Or(e.Host, "the host") + " was not reached: " + e.Reason()
}

// Reason says in words why a host was not reached from a sandbox.
func (e *Error) Reason() string {
	switch e.Code {
	case CodeNotPermitted:
		return cmp.Or(e.Why, "it is not allowed from this sandbox")
	case CodeInvalidHost:
		return "it is no host name"
	case CodePort:
		return "its port is not one for such connections"
	case CodeNoRecords, CodeDNS:
		return "its name was not found"
	case CodeConnect:
		return "it did not accept the connection"
	case CodeTimeout:
		return "it took too long to answer"
	case CodeDNSAddress:
		return "it is not a host of the public internet, and of others sandboxes reach those that people list: sandbox.egress.internal (" + string(e.Code) + ")"
	}
	return "it is not a host of the public internet, and sandboxes reach no others (" + string(e.Code) + ")"
}

func statusOf(e *Error) int {
	switch e.Code {
	case CodeTimeout:
		return http.StatusGatewayTimeout
	case CodeConnect, CodeDNS, CodeNoRecords:
		return http.StatusBadGateway
	case CodeProxyRequest, CodeHeaderTooLarge:
		return http.StatusBadRequest
	}
	return http.StatusForbidden
}
