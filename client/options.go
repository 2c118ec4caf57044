package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward/approval/socket"
	"github.com/toolward/toolward/identity"
)

// The scopes of a program that asks or answers.
const (
	ScopeRead      = identity.ScopeRead      // the catalog of tools, the record
	ScopeWrite     = identity.ScopeWrite     // to call tools
	ScopeApprovals = identity.ScopeApprovals // to ask, and for a person's device to answer
	ScopePairing   = identity.ScopePairing
	ScopeAdmin     = identity.ScopeAdmin
)

// Options says where the gateway is and who the program is.
type Options struct {
	// Address is ws://127.0.0.1:7411 on this machine, wss://… elsewhere, or unix:///…/toolward.sock: the socket in
	// Toolward's home. Behind the socket there can only be a program of the same user; whoever listens at a port gets the
	// credential. Required.
	Address string

	// One of them, as the gateway is configured. DeviceToken is the device's own, from an earlier [Client.DeviceToken].
	Token, Password, DeviceToken string

	Identity *Identity // optional, see the package comment
	Name     string    // what people are shown: letters, at most 100 bytes
	Version  string    // of the program; optional
	Scopes   []string  // none if left out

	// Pairing makes Dial wait until a person has approved the device. It is told the id of the request, for the program to
	// show: toolward devices approve <id>.
	Pairing func(request string)

	TLS *tls.Config // of wss; optional
}

// check says what is missing or would give a secret away.
func (o *Options) check() error {
	switch {
	case o.Address == "":
		return errors.New("no address: give ws://127.0.0.1:7411 or unix:///home/…/.toolward/toolward.sock")
	case o.Token != "" && o.Password != "":
		return errors.New("a token and a password: the gateway takes one of them")
	case o.DeviceToken != "" && o.Identity == nil, o.Pairing != nil && o.Identity == nil:
		return errors.New("a device without Identity: only whoever holds its key can be paired, or use its token")
	case o.Identity != nil && o.Identity.key == nil:
		return errors.New("the identity is empty: make it with LoadIdentity or NewIdentity")
	}
	_, _, err := o.target()
	return err
}

// target is the URL to open and the path of the socket to open it through, "" for the network.
func (o *Options) target() (address, path string, err error) {
	u, err := url.Parse(o.Address)
	if err != nil {
		return "", "", fmt.Errorf("address: %w", err)
	}
	switch {
	case u.User != nil || u.RawQuery != "":
		return "", "", errors.New("address: credentials do not belong into an address, it ends up in logs")
	case u.Scheme == "unix" && filepath.IsAbs(u.Path) && u.Host == "":
		return "ws://localhost/", u.Path, nil
	case u.Scheme == "wss" && u.Host != "", u.Scheme == "ws" && isLoopback(u.Hostname()):
		return u.String(), "", nil
	case u.Scheme == "ws":
		return "", "", fmt.Errorf("address: ws://%s would send the credential unencrypted over a network: use wss", u.Host)
	}
	return "", "", fmt.Errorf("address %q: expected ws://127.0.0.1:port, wss://host or unix:///path", o.Address)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// httpClient opens the connection, and only where it was told to: a gateway that sends elsewhere would send the credential
// elsewhere.
func (o *Options) httpClient(path string) (client *http.Client, done func()) {
	transport := &http.Transport{TLSClientConfig: o.TLS}
	if path != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, path) }
	} else if strings.HasPrefix(o.Address, "wss:") {
		transport.Proxy = http.ProxyFromEnvironment // it sees nothing but TLS
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the gateway redirects: not followed") },
	}, transport.CloseIdleConnections
}
