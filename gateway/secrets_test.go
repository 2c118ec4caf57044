package gateway

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every secret that the configuration names is hidden, whichever part named it last: in the log, too, where errors quote what failed.
func TestEverySecretOfTheConfigurationIsHidden(t *testing.T) {
	options := optionsFor(shortHome(t), "127.0.0.1:0")
	var log bytes.Buffer
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	secrets := map[string]string{
		"GATEWAY_SECRET": "orange-gateway-secret", "PLUGIN_SECRET": "violet-plugin-secret", "CHECKPOINT_SECRET": "yellow-checkpoint-secret",
	}
	for name, value := range secrets {
		t.Setenv(name, value)
	}
	settings := `{
		"gateway": {"auth": {"mode": "token", "tokenEnv": "GATEWAY_SECRET"}},
		"telemetry": {"traces": {"endpoint": "http://127.0.0.1:1", "headers": {"x-key": "silver-collector-secret"}}},
		"plugins": {"entries": {"own": {"kind": "http", "url": "http://127.0.0.1:1/hook", "hooks": ["after_tool_call"], "secretEnv": "PLUGIN_SECRET"}}},
		"teg": {"audit": {"checkpoints": {"webhook": "http://127.0.0.1:1/x", "webhookTokenEnv": "CHECKPOINT_SECRET"}}}
	}`
	if err := os.MkdirAll(options.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(options.Home, "toolward.jsonc"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	secrets["headers"] = "silver-collector-secret"
	for name, value := range secrets {
		if clean := g.secrets.String("it is " + value); strings.Contains(clean, value) {
			t.Errorf("%s is shown: %s", name, clean)
		}
		g.log.Warn("failed: "+value, "err", errors.New("said "+value))
	}
	for name, value := range secrets {
		if strings.Contains(log.String(), value) {
			t.Errorf("%s is in the log", name)
		}
	}
	if !strings.Contains(log.String(), "failed: [hidden: held]") {
		t.Errorf("the log: %s", log.String())
	}
}
