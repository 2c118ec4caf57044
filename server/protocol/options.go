package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolward/toolward/server/door"
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
	TokenEnv     string       `json:"tokenEnv,omitempty" jsonschema:"the variable of the gateway that holds the shared secret of mode token; better: toolward token create --gateway"`
	PasswordEnv  string       `json:"passwordEnv,omitempty" jsonschema:"the variable of the gateway that holds the shared secret of mode password"`
	TrustedProxy TrustedProxy `json:"trustedProxy,omitzero" jsonschema:"mode trusted-proxy"`

	// The secrets themselves, see Resolve. They are never in the file: what is there is shown in differences, in "config
	// show", and to every agent that can read it.
	Token    string `json:"-"`
	Password string `json:"-"`
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
	case a.Password != "" || a.PasswordEnv != "":
		return ModePassword
	}
	return ModeToken
}

// shortestSecret is how many bytes a secret has at least: whoever reaches the port may try some every minute.
const shortestSecret = 8

// Check says what is wrong with the settings: key and what to write instead. listen is the address that is listened on.
func (c Config) Check(listen string) error {
	var wrong []error
	say := func(key, format string, args ...any) {
		wrong = append(wrong, &SettingError{key, fmt.Sprintf(format, args...)})
	}
	if !slices.Contains([]string{"", ModeToken, ModePassword, ModeTrustedProxy, ModeNone}, c.Auth.Mode) {
		say("gateway.auth.mode", "%s: expected token, password, trusted-proxy or none", door.QuoteShort(c.Auth.Mode))
	}
	switch c.Auth.mode() {
	case ModePassword:
		if c.Auth.PasswordEnv == "" {
			say("gateway.auth.mode", "password, but gateway.auth.passwordEnv does not say where it is")
		}
	case ModeTrustedProxy:
		if c.Auth.TrustedProxy.UserHeader == "" {
			say("gateway.auth.trustedProxy.userHeader", "mode trusted-proxy needs the header that names the user")
		}
		if len(c.TrustedProxies) == 0 {
			say("gateway.trustedProxies", "mode trusted-proxy needs the addresses of the proxy")
		}
	case ModeNone:
		if !door.IsLoopbackHost(listen) {
			say("gateway.auth.mode", "none, while server.listen is %s: without a credential only 127.0.0.1 is listened on", door.QuoteShort(listen))
		}
	}
	if _, err := door.ParseProxies(c.TrustedProxies); err != nil {
		say("gateway.trustedProxies", "%s: expected addresses or ranges such as 10.0.0.0/8", err)
	}
	for _, origin := range c.ControlUI.AllowedOrigins {
		if !door.IsOrigin(origin) {
			say("gateway.controlUi.allowedOrigins", "%s: expected an exact origin such as https://console.example.org", door.QuoteShort(origin))
		}
	}
	return errors.Join(wrong...)
}

// Resolve reads the secrets from the environment. A secret that is named and is not there, or is easy to guess, is an
// error: a gateway does not start half locked.
func (c Config) Resolve(lookup func(string) (string, bool)) (Config, error) {
	for _, secret := range []struct {
		key, variable string
		into          *string
	}{{"gateway.auth.tokenEnv", c.Auth.TokenEnv, &c.Auth.Token}, {"gateway.auth.passwordEnv", c.Auth.PasswordEnv, &c.Auth.Password}} {
		if secret.variable == "" {
			continue
		}
		value, set := lookup(secret.variable)
		switch {
		case !set || value == "":
			return c, &SettingError{secret.key, "the variable " + secret.variable + " is not set"}
		case len(value) < shortestSecret || slices.Contains([]string{"undefined", "changeme", "password"}, strings.ToLower(value)):
			return c, &SettingError{secret.key, fmt.Sprintf("what %s holds is easy to guess: use at least %d characters, for instance what openssl rand -hex 24 prints", secret.variable, shortestSecret)}
		}
		*secret.into = value
	}
	return c, nil
}

// SettingError is one wrong setting.
type SettingError struct{ Key, Text string }

func (e *SettingError) Error() string { return e.Key + ": " + e.Text }

// ConfigKey names the setting, for its place in the file.
func (e *SettingError) ConfigKey() string { return e.Key }

// Tokens recognizes tokens that were made for the gateway protocol. Package identity implements it.
type Tokens interface {
	GatewayToken(ctx context.Context, secret string) error
	HasGatewayToken() bool
}
