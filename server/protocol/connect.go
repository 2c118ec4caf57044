package protocol

import (
	"slices"

	"github.com/toolward/toolward/identity"
)

// connectParams are the parameters of "connect".
type connectParams struct {
	MinProtocol int           `json:"minProtocol"`
	MaxProtocol int           `json:"maxProtocol"`
	Client      Client        `json:"client"`
	Role        *string       `json:"role"`
	Scopes      []string      `json:"scopes"`
	Caps        []string      `json:"caps"`
	Auth        connectAuth   `json:"auth"`
	Device      *deviceParams `json:"device"`
}

// Client is what a client says about itself. Nothing of it is believed, but for the platform if a device signed it.
type Client struct {
	ID           string `json:"id"`
	DisplayName  string `json:"displayName"`
	Version      string `json:"version"`
	Platform     string `json:"platform"`
	DeviceFamily string `json:"deviceFamily"`
	Mode         string `json:"mode"`
}

// name is what records call the client.
func (c *Client) name() string {
	if c.DisplayName != "" {
		return c.DisplayName
	}
	return c.ID
}

type connectAuth struct {
	Token       string `json:"token"`
	Password    string `json:"password"`
	DeviceToken string `json:"deviceToken"`
}

// signed is the credential that is part of what a device signs.
func (a *connectAuth) signed() string {
	if a.Token != "" {
		return a.Token
	}
	return a.DeviceToken
}

type deviceParams struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// Programs that may connect, and what they may be.
var (
	clientIDs = []string{
		"cli", "gateway-client", "node-host", "webchat", "webchat-ui", "openclaw-control-ui", "openclaw-tui", "openclaw-macos",
		"openclaw-linux", "openclaw-ios", "openclaw-android", "openclaw-probe", "test", "fingerprint", "toolward-ui",
	}
	clientModes = []string{"webchat", "cli", "ui", "backend", "node", "probe", "test"}
)

// controlUI reports whether the client is a console in a web page.
func (c *Client) controlUI() bool { return c.ID == "openclaw-control-ui" || c.ID == "toolward-ui" }

// webchat reports whether the client is a chat in a web page.
func (c *Client) webchat() bool {
	return c.ID == "webchat" || c.ID == "webchat-ui" || c.Mode == "webchat"
}

const (
	longText   = 1024
	longList   = 256
	longSecret = 4096
)

// connectShape is the shape of the parameters. What it lists and connectParams leaves out is accepted and not used.
func connectShape() shape {
	words := list(name(longText), longList)
	return object(
		need("minProtocol", whole(1)), need("maxProtocol", whole(1)),
		need("client", object(
			need("id", oneOf(clientIDs...)), may("displayName", name(longText)), need("version", name(longText)),
			need("platform", name(longText)), may("deviceFamily", name(longText)), may("modelIdentifier", name(longText)),
			need("mode", oneOf(clientModes...)), may("instanceId", name(longText)), may("buildId", name(longText)),
			may("timeZone", name(longText)),
		)),
		may("role", name(longText)), may("scopes", words), may("caps", words), may("commands", words),
		may("permissions", mapOf(boolean(), longList)), may("pathEnv", text(1<<16)),
		may("auth", object(
			may("token", text(longSecret)), may("password", text(longSecret)), may("deviceToken", text(longSecret)),
			may("bootstrapToken", text(longSecret)), may("approvalRuntimeToken", text(longSecret)), may("agentRuntimeIdentityToken", text(longSecret)),
		)),
		may("device", object(
			need("id", name(longText)), need("publicKey", name(longText)), need("signature", name(longText)),
			need("signedAt", whole(0)), may("nonce", text(longText)),
		)),
		may("locale", text(longText)), may("userAgent", text(longText)),
	)
}

// version is the newest version that both sides speak; false if there is none.
func (p *connectParams) version() (int, bool) {
	chosen := min(p.MaxProtocol, newestVersion)
	return chosen, chosen >= max(p.MinProtocol, oldestVersion)
}

// role is as what the client connects; false if there is no such role.
func (p *connectParams) role() (identity.Role, bool) {
	if p.Role == nil {
		return identity.RoleOperator, true
	}
	role := identity.Role(*p.Role)
	return role, role == identity.RoleOperator || role == identity.RoleNode
}

// proof is what the device signed.
func (p *connectParams) proof(role identity.Role) *identity.Proof {
	d := p.Device
	return &identity.Proof{
		DeviceID: d.ID, PublicKey: d.PublicKey, Signature: d.Signature, SignedAtMs: d.SignedAt, Nonce: d.Nonce,
		ClientID: p.Client.ID, ClientMode: p.Client.Mode, Role: role, Scopes: p.Scopes, Token: p.Auth.signed(),
		Platform: p.Client.Platform, Family: p.Client.DeviceFamily,
	}
}

// scopes are those that were asked for, each once, in the order in which they were sent.
func (p *connectParams) scopes() []string {
	out := []string{}
	for _, scope := range p.Scopes {
		if !slices.Contains(out, scope) {
			out = append(out, scope)
		}
	}
	return out
}
