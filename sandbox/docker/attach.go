package docker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// Streams of an attached container, as the container engine marks them.
const (
	streamOut   = 1
	streamErr   = 2
	streamFault = 3 // the container engine itself says what went wrong
)

const (
	attachBuffer = 256 << 10
	keptErrors   = 4 << 10 // of what the program inside complains about
)

// channel is the stream to the program inside: the standard streams of a container, which its engine sends in one.
type channel struct {
	conn   net.Conn
	reader *bufio.Reader
	left   uint32 // of the piece of standard output that is being read

	mu     sync.Mutex
	errors []byte // the last of what was said on standard error
}

func newChannel(conn net.Conn) *channel {
	return &channel{conn: conn, reader: bufio.NewReaderSize(conn, attachBuffer)}
}

// Read reads standard output. It is called by one goroutine.
func (c *channel) Read(p []byte) (int, error) {
	for c.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(c.reader, header[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(header[4:])
		switch header[0] {
		case streamOut:
			c.left = size
		case streamErr:
			if err := c.keep(size); err != nil {
				return 0, err
			}
		case streamFault:
			err := c.keep(size)
			return 0, fmt.Errorf("the container engine ended the stream: %s (%w)", c.complaints(), err)
		default:
			return 0, fmt.Errorf("the container engine sent a stream of kind %d", header[0])
		}
	}
	n, err := c.reader.Read(p[:min(len(p), int(c.left))])
	c.left -= uint32(n)
	return n, err
}

// keep keeps the end of what is said on standard error: a container could say it without end.
func (c *channel) keep(size uint32) error {
	for size > 0 {
		var piece [1024]byte
		n, err := io.ReadFull(c.reader, piece[:min(size, uint32(len(piece)))])
		c.mu.Lock()
		c.errors = append(c.errors, piece[:n]...)
		if extra := len(c.errors) - keptErrors; extra > 0 {
			c.errors = append(c.errors[:0], c.errors[extra:]...)
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
		size -= uint32(n)
	}
	return nil
}

// complaints is the end of what was said on standard error.
func (c *channel) complaints() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(string(c.errors))
}

func (c *channel) Write(p []byte) (int, error) { return c.conn.Write(p) }

func (c *channel) Close() error { return c.conn.Close() }
