package elsewhere

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Settings is the configuration section teg.audit.checkpoints.
type Settings struct {
	Syslog          string `json:"syslog,omitempty" jsonschema:"log of the system that checkpoints of the record are sent to: local, udp://host:514 or tcp://host:601"`
	File            string `json:"file,omitempty" jsonschema:"absolute path of a file that checkpoints are added to: one that the gateway's user can only append to"`
	Webhook         string `json:"webhook,omitempty" jsonschema:"URL that each checkpoint is posted to"`
	WebhookTokenEnv string `json:"webhookTokenEnv,omitempty" jsonschema:"environment variable with the token that the webhook wants as bearer"`
	EveryMs         int    `json:"everyMs,omitempty" jsonschema:"shortest time between two checkpoints to one place; default 60000"`
}

// The bounds of Settings.EveryMs, and its default.
const (
	LeastEveryMs   = 1_000
	MostEveryMs    = 24 * 3600 * 1000
	DefaultEveryMs = 60_000
)

// Problem is a wrong setting.
type Problem struct{ Key, Text string }

// Check lists what is wrong in the section.
func (s Settings) Check() (wrong []Problem) {
	add := func(key, format string, args ...any) {
		wrong = append(wrong, Problem{key, fmt.Sprintf(format, args...)})
	}
	if s.Syslog != "" {
		if _, _, err := syslogAddress(s.Syslog); err != nil {
			add("syslog", "%s", err)
		}
	}
	if s.File != "" && (!filepath.IsAbs(s.File) || filepath.Clean(s.File) != s.File) {
		add("file", "%q is not a clean absolute path", s.File)
	}
	if s.Webhook != "" {
		u, err := url.Parse(s.Webhook)
		switch {
		case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
			add("webhook", "it is not a plain URL such as https://log.example.org/toolward")
		case u.Scheme != "https" && (u.Scheme != "http" || !thisMachine(u.Hostname())):
			add("webhook", "use https; http only to 127.0.0.1 or ::1")
		}
	}
	if s.WebhookTokenEnv != "" && s.Webhook == "" {
		add("webhookTokenEnv", "there is no webhook that wants it")
	}
	if s.EveryMs != 0 && (s.EveryMs < LeastEveryMs || s.EveryMs > MostEveryMs) {
		add("everyMs", "%d is out of range: write %d to %d", s.EveryMs, LeastEveryMs, MostEveryMs)
	}
	return wrong
}

// Token is the token of the webhook.
func (s Settings) Token() string {
	if s.WebhookTokenEnv == "" {
		return ""
	}
	return os.Getenv(s.WebhookTokenEnv)
}

func (s Settings) every() time.Duration {
	if s.EveryMs == 0 {
		return DefaultEveryMs * time.Millisecond
	}
	return time.Duration(s.EveryMs) * time.Millisecond
}

func thisMachine(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// syslogAddress takes the setting apart; network "" is the system's own log.
func syslogAddress(text string) (network, address string, err error) {
	if text == "local" {
		return "", "", nil
	}
	network, address, found := strings.Cut(text, "://")
	if _, port, err := net.SplitHostPort(address); !found || err != nil || port == "" || network != "udp" && network != "tcp" {
		return "", "", fmt.Errorf("%q: write local, udp://host:514 or tcp://host:601", text)
	}
	return network, address, nil
}
