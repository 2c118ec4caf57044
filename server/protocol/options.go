package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config is the part of the section "gateway" of the configuration file that is about who may connect.
type Config struct {
	Auth                Auth      `json:"auth,omitzero" jsonschema:"what clients of the gateway protocol prove"`
	ControlUI           ControlUI `json:"controlUi,omitzero" jsonschema:"web pages that speak the gateway protocol"`
	TrustedProxies      []string  `json:"trustedProxies,omitempty" jsonschema:"addresses and ranges of reverse proxies whose X-Forwarded-For counts"`
	AllowRealIPFallback bool      `json:"allowRealIpFallback,omitempty" jsonschema:"X-Real-IP of a trusted proxy counts where there is no X-Forwarded-For"`
}

// Auth is gateway.auth.
type Auth struct {
	Mode         string       `json:"mode,omitempty" jsonschema:"token, password, trusted-proxy or none; default password if one is set, else token"`
	Token        string       `json:"token,omitempty" jsonschema:"the shared secret of mode token; better: toolward token create --gateway"`
	Password     string       `json:"password,omitempty" jsonschema:"the shared secret of mode password"`
	TrustedProxy TrustedProxy `json:"trustedProxy,omitzero" jsonschema:"mode trusted-proxy"`
}

// TrustedProxy is gateway.auth.trustedProxy: a reverse proxy that signs people in and names them.
type TrustedProxy struct {
	UserHeader      string   `json:"userHeader,omitempty" jsonschema:"header that names the user"`
	RequiredHeaders []string `json:"requiredHeaders,omitempty" jsonschema:"headers that must be there, too"`
	AllowUsers      []string `json:"allowUsers,omitempty" jsonschema:"only these users; default all"`
}

// ControlUI is gateway.controlUi.
type ControlUI struct {
	AllowedOrigins    []string `json:"allowedOrigins,omitempty" jsonschema:"exact origins of pages that may connect"`
	AllowInsecureAuth bool     `json:"allowInsecureAuth,omitempty" jsonschema:"a page of this machine may connect without a device"`
	HostFallback      bool     `json:"dangerouslyAllowHostHeaderOriginFallback,omitempty" jsonschema:"a page of the host name that the browser used may connect"`
}

// The modes of Auth.
const (
	ModeToken        = "token"
	ModePassword     = "password"
	ModeTrustedProxy = "trusted-proxy"
	ModeNone         = "none"
)

// mode is the mode in force.
func (a Auth) mode() string {
	switch {
	case a.Mode != "":
		return a.Mode
	case a.Password != "":
		return ModePassword
	}
	return ModeToken
}

// shortestSecret is how many bytes a configured secret has at least: it is compared at every door that is open.
const shortestSecret = 8

// Check says what is wrong with the settings: key and what to write instead. listen is the address that is listened on.
func (c Config) Check(listen string) error {
	var wrong []error
	say := func(key, format string, args ...any) {
		wrong = append(wrong, &SettingError{key, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains([]string{"", ModeToken, ModePassword, ModeTrustedProxy, ModeNone}, c.Auth.Mode) {
		say("gateway.auth.mode", "%s: expected token, password, trusted-proxy or none", quoteShort(c.Auth.Mode))
	}
	for key, secret := range map[string]string{"gateway.auth.token": c.Auth.Token, "gateway.auth.password": c.Auth.Password} {
		if secret != "" && (len(secret) < shortestSecret || slices.Contains([]string{"undefined", "changeme", "password"}, strings.ToLower(secret))) {
			say(key, "too easy to guess: use at least %d characters, for instance what openssl rand -hex 24 prints", shortestSecret)
		}
	}
	switch c.Auth.mode() {
	case ModePassword:
		if c.Auth.Password == "" {
			say("gateway.auth.mode", "password, but gateway.auth.password is not set")
		}
	case ModeTrustedProxy:
		if c.Auth.TrustedProxy.UserHeader == "" {
			say("gateway.auth.trustedProxy.userHeader", "mode trusted-proxy needs the header that names the user")
		}
		if len(c.TrustedProxies) == 0 {
			say("gateway.trustedProxies", "mode trusted-proxy needs the addresses of the proxy")
		}
	case ModeNone:
		if !isLoopbackName(nameOf(listen)) {
			say("gateway.auth.mode", "none, while server.listen is %s: without a credential only 127.0.0.1 is listened on", quoteShort(listen))
		}
	}
	if _, err := ParseProxies(c.TrustedProxies); err != nil {
		say("gateway.trustedProxies", "%s: expected addresses or ranges such as 10.0.0.0/8", err)
	}
	for _, origin := range c.ControlUI.AllowedOrigins {
		if _, ok := parseOrigin(origin); !ok {
			say("gateway.controlUi.allowedOrigins", "%s: expected an exact origin such as https://console.example.org", quoteShort(origin))
		}
	}
	return errors.Join(wrong...)
}

// SettingError is one wrong setting.
type SettingError struct{ Key, Text string }

func (e *SettingError) Error() string { return e.Key + ": " + e.Text }

// Tokens recognises tokens that were made for the gateway protocol. Package device implements it.
type Tokens interface {
	GatewayToken(ctx context.Context, secret string) error
	HasGatewayToken() bool
}
