package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Client is a connection to a gateway that is kept up. Its methods may be called from any goroutine. The zero value is
// closed. Make it with [Dial], and Close it.
type Client struct {
	o     Options
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	ended chan struct{} // closed when nothing of it runs any more
	slots chan struct{} // requests under way

	mu       sync.Mutex
	link     *link         // nil while there is none
	changed  chan struct{} // closed, and made anew, when link or why change
	why      error         // it has ended for good
	token    string        // the device's own
	watchers map[*watcher]struct{}
}

const (
	inFlight     = 200 // requests at a time; the gateway takes 256, questions of our own among them
	firstPause   = 250 * time.Millisecond
	longestPause = 15 * time.Second
	pairingPause = 2 * time.Second
)

// Dial connects to a gateway, within the time of ctx. Afterwards ctx does not matter: the client lives until Close.
func Dial(ctx context.Context, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("gateway client: %w", err)
	}
	o.Scopes = slices.Clone(o.Scopes)
	l, err := dialPaired(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("gateway client: %w", err)
	}
	c := &Client{
		o: o, ended: make(chan struct{}), slots: make(chan struct{}, inFlight), link: l, changed: make(chan struct{}), token: l.token,
		watchers: map[*watcher]struct{}{},
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	go c.keep(l)
	return c, nil
}

// dialPaired connects, and waits for a person to approve the device if the program wants that.
func dialPaired(ctx context.Context, o *Options) (*link, error) {
	told := ""
	for {
		l, err := open(ctx, o, o.DeviceToken)
		var refused *Error
		if err == nil || o.Pairing == nil || !errors.As(err, &refused) || refused.Detail != "PAIRING_REQUIRED" {
			return l, err
		}
		if refused.Pairing != told {
			told = refused.Pairing
			o.Pairing(told)
		}
		if !pause(ctx, pairingPause) {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// pause waits; false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// keep serves connections, one after the other.
func (c *Client) keep(l *link) {
	defer close(c.ended)
	for {
		closed := make(chan struct{})
		notClosing := context.AfterFunc(c.ctx, func() { l.close(); close(closed) })
		l.serve(c.tell, c.missed)
		if !notClosing() {
			<-closed
		}
		c.put(nil, nil)
		next, err := c.again()
		if err != nil {
			c.put(nil, err)
			c.closeWatchers()
			return
		}
		l = next
		c.put(l, nil)
		c.missed() // what happened in between was told to nobody
	}
}

// again connects anew, as often as it takes; an error is for good.
func (c *Client) again() (*link, error) {
	for wait := firstPause; ; wait = min(2*wait, longestPause) {
		// Not all programs at once, after a gateway was restarted.
		if !pause(c.ctx, wait/2+rand.N(wait)) {
			return nil, ErrClosed
		}
		l, err := open(c.ctx, &c.o, c.DeviceToken())
		switch {
		case c.ctx.Err() != nil:
			if l != nil {
				_ = l.ws.CloseNow() // nobody wants it any more
			}
			return nil, ErrClosed
		case err == nil:
			return l, nil
		case !passes(err):
			return nil, fmt.Errorf("connect again: %w", err)
		}
		var refused *Error
		if errors.As(err, &refused) {
			wait = max(wait, refused.RetryAfter)
		}
	}
}

// put makes l the connection, or ends the client.
func (c *Client) put(l *link, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.why = l, why
	if l != nil && l.token != "" {
		c.token = l.token
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close ends the connection. When it returns, nothing of the client runs any more. Questions that wait stay open for half a
// minute, for the device to come back.
func (c *Client) Close() error {
	if c == nil || c.ended == nil {
		return nil
	}
	c.stop()
	<-c.ended
	return nil
}

// Device is the id of the program's device, "" if it has none.
func (c *Client) Device() string {
	if c == nil || c.o.Identity == nil {
		return ""
	}
	return c.o.Identity.ID()
}

// DeviceToken is the device's own token: a program that keeps it needs no other credential next time. "" if there is none.
func (c *Client) DeviceToken() string {
	if c == nil || c.ended == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == "" {
		return c.o.DeviceToken
	}
	return c.token
}

// connected waits for a connection.
func (c *Client) connected(ctx context.Context) (*link, error) {
	if c == nil || c.ended == nil {
		return nil, ErrClosed
	}
	for {
		c.mu.Lock()
		l, why, changed := c.link, c.why, c.changed
		c.mu.Unlock()
		switch {
		case why != nil:
			return nil, why
		case c.ctx.Err() != nil:
			return nil, ErrClosed
		case l != nil:
			return l, nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("there is no connection: %w", context.Cause(ctx))
		}
	}
}

// Request sends any request of the protocol once and decodes the answer into what into points to, unless that is nil. With
// ErrLost nobody knows whether the gateway has carried it out.
func (c *Client) Request(ctx context.Context, method string, params, into any) error {
	if c == nil || c.ended == nil {
		return ErrClosed
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
	l, err := c.connected(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	x, err := l.begin(ctx, method, params, false)
	if err != nil {
		return err
	}
	defer l.forget(x)
	payload, err := l.await(ctx, x)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", method, err)
	}
	return nil
}

// look is Request for what changes nothing: it is repeated when the connection broke.
func (c *Client) look(ctx context.Context, method string, params, into any) error {
	for {
		err := c.Request(ctx, method, params, into)
		if !errors.Is(err, ErrLost) || c.ctx.Err() != nil {
			return err
		}
		if _, err := c.reconnected(ctx); err != nil {
			return err
		}
	}
}

// reconnected waits until there is a connection after one that broke.
func (c *Client) reconnected(ctx context.Context) (*link, error) {
	if !pause(ctx, 10*time.Millisecond) { // the broken one may still stand there
		return nil, context.Cause(ctx)
	}
	return c.connected(ctx)
}
