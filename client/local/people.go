package local

import (
	"context"
	"net/url"

	"github.com/toolward/toolward/server/api"
)

// SignedIn is who has signed this terminal in.
type SignedIn = api.SignedIn

// SignIn signs this terminal in.
func (g *Gateway) SignIn(ctx context.Context, passphrase string) (signed SignedIn, err error) {
	err = g.post(ctx, "/v1/login", api.Passphrase{Passphrase: passphrase}, &signed)
	return signed, err
}

// SetUp sets the first passphrase, with the code that the gateway has printed, and signs this terminal in.
func (g *Gateway) SetUp(ctx context.Context, code, passphrase string) (signed SignedIn, err error) {
	err = g.post(ctx, "/v1/setup", api.FirstPassphrase{Code: code, Passphrase: passphrase}, &signed)
	return signed, err
}

// SignOut signs this terminal out.
func (g *Gateway) SignOut(ctx context.Context) error {
	return g.post(ctx, "/v1/logout", struct{}{}, nil)
}

// NewToken is a token that is wanted.
type NewToken = api.NewToken

// CreateToken makes a token. Its secret is shown this once.
func (g *Gateway) CreateToken(ctx context.Context, wanted NewToken) (made api.CreatedToken, err error) {
	err = g.post(ctx, "/v1/tokens", wanted, &made)
	return made, err
}

// Tokens lists tokens.
func (g *Gateway) Tokens(ctx context.Context) (list api.Tokens, err error) {
	err = g.get(ctx, "/v1/tokens", nil, &list)
	return list, err
}

// RevokeToken ends a token.
func (g *Gateway) RevokeToken(ctx context.Context, id string) error {
	return g.post(ctx, "/v1/tokens/"+url.PathEscape(id)+"/revoke", struct{}{}, nil)
}

// Devices lists the devices that wait and that are paired.
func (g *Gateway) Devices(ctx context.Context) (list api.Devices, err error) {
	err = g.get(ctx, "/v1/devices", nil, &list)
	return list, err
}

// ApproveDevice pairs the device of a request, or vouches for one that is paired.
func (g *Gateway) ApproveDevice(ctx context.Context, id string) (d api.PairedDevice, err error) {
	err = g.post(ctx, device(id)+"/approve", struct{}{}, &d)
	return d, err
}

// RejectDevice declines a device that waits.
func (g *Gateway) RejectDevice(ctx context.Context, id string) error {
	return g.post(ctx, device(id)+"/reject", struct{}{}, nil)
}

// RemoveDevice forgets a paired device.
func (g *Gateway) RemoveDevice(ctx context.Context, id string) error {
	return g.post(ctx, device(id)+"/remove", struct{}{}, nil)
}

func device(id string) string { return "/v1/devices/" + url.PathEscape(id) }
