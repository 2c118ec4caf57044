package inside

import (
	"context"
	"io"

	"github.com/toolward/toolward/sandbox"
)

// Client is the connection to the program inside one sandbox. Its methods are those of [sandbox.Handle], with the same
// contract, and can be called from many goroutines.
type Client struct {
	done chan struct{}
}

// Connect greets the program inside and sends it its set-up. The client takes the stream over, also when it fails.
func Connect(ctx context.Context, conn io.ReadWriteCloser, setup Setup) (*Client, error) {
	conn.Close() //nolint:errcheck // nothing was sent
	return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the program inside does not serve yet")
}

// Start starts a command.
func (c *Client) Start(ctx context.Context, command sandbox.Command) (sandbox.Process, error) {
	return nil, c.Err()
}

// Stat says what a path leads to.
func (c *Client) Stat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return sandbox.FileInfo{}, c.Err()
}

// Lstat says what a path is.
func (c *Client) Lstat(ctx context.Context, path string) (sandbox.FileInfo, error) {
	return sandbox.FileInfo{}, c.Err()
}

// ReadFile reads a part of a regular file.
func (c *Client) ReadFile(ctx context.Context, path string, offset, limit int64) ([]byte, sandbox.FileInfo, error) {
	return nil, sandbox.FileInfo{}, c.Err()
}

// WriteFile makes data the content of a file.
func (c *Client) WriteFile(ctx context.Context, path string, data []byte, options sandbox.WriteOptions) (sandbox.FileInfo, error) {
	return sandbox.FileInfo{}, c.Err()
}

// Mkdir creates a directory and its missing parents.
func (c *Client) Mkdir(ctx context.Context, path string) error { return c.Err() }

// Remove removes what stands at a path.
func (c *Client) Remove(ctx context.Context, path string, recursive bool) error { return c.Err() }

// Rename moves a file to a name that does not exist.
func (c *Client) Rename(ctx context.Context, from, to string) error { return c.Err() }

// List returns the entries of a directory in order of names.
func (c *Client) List(ctx context.Context, path string, limit int) ([]sandbox.Entry, bool, error) {
	return nil, false, c.Err()
}

// Stats is what the program inside can tell of the sandbox: what it cannot is 0.
func (c *Client) Stats(ctx context.Context) (sandbox.Stats, error) { return sandbox.Stats{}, c.Err() }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the connection has ended; nil while it has not.
func (c *Client) Err() error { return nil }

// Close ends the connection, and with it everything that the program inside runs.
func (c *Client) Close() error { return nil }
