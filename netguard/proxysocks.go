package netguard

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
)

// SOCKS5, RFC 1928, as far as a client needs it: no authentication (the socket is the authority), CONNECT only.
const (
	socksVersion = 5

	socksNoAuth       = 0
	socksNoneOfThese  = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksOK           = 0
	socksFailed       = 1
	socksNotAllowed   = 2
	socksUnreachable  = 4
	socksRefused      = 5
	socksNotSupported = 7
	socksBadAddress   = 8
)

var errSOCKS = errors.New("the SOCKS request is not understood")

func (c *client) readSOCKS() error {
	methods, err := c.readSized(1)
	if err != nil {
		return err
	}
	for _, m := range methods {
		if m == socksNoAuth {
			if _, err := c.Write([]byte{socksVersion, socksNoAuth}); err != nil {
				return err
			}
			return c.readSOCKSRequest()
		}
	}
	_, _ = c.Write([]byte{socksVersion, socksNoneOfThese})
	return errSOCKS
}

// readSized reads skip bytes, a length of one byte, and that many bytes.
func (c *client) readSized(skip int) ([]byte, error) {
	head := make([]byte, skip+1)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return nil, err
	}
	body := make([]byte, head[skip])
	_, err := io.ReadFull(c.in, body)
	return body, err
}

func (c *client) readSOCKSRequest() error {
	reply := func(status byte) error {
		_, err := c.Write([]byte{socksVersion, status, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
		return err
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	if head[0] != socksVersion || head[1] != socksConnect {
		_ = reply(socksNotSupported)
		return errSOCKS
	}
	var err error
	if c.host, err = c.readSOCKSHost(head[3]); err != nil {
		_ = reply(socksBadAddress)
		return err
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(c.in, port); err != nil {
		return err
	}
	c.port = binary.BigEndian.Uint16(port)
	c.accept = func() error { return reply(socksOK) }
	c.refuse = func(e *Error) { _ = reply(socksStatus(e)) }
	return nil
}

func (c *client) readSOCKSHost(kind byte) (string, error) {
	var raw []byte
	switch kind {
	case socksName:
		name, err := c.readSized(0)
		return string(name), err
	case socksIPv4:
		raw = make([]byte, 4)
	case socksIPv6:
		raw = make([]byte, 16)
	default:
		return "", errSOCKS
	}
	if _, err := io.ReadFull(c.in, raw); err != nil {
		return "", err
	}
	a, _ := netip.AddrFromSlice(raw)
	return bracketed(a.String()), nil
}

func socksStatus(e *Error) byte {
	switch e.Code {
	case CodeConnect:
		return socksRefused
	case CodeTimeout, CodeDNS, CodeNoRecords:
		return socksUnreachable
	case CodeInvalidHost:
		return socksFailed
	}
	return socksNotAllowed
}
