package redact_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/toolward/toolward/redact"
)

type valuer struct{ text string }

func (v valuer) LogValue() slog.Value { return slog.StringValue(v.text) }

// Whatever way a text takes into an entry of a log, no secret goes with it.
func TestLogHidesSecrets(t *testing.T) {
	const held, shaped = "correct-horse-battery", "ghp_0123456789abcdefghijklmnopqrstuvwxyzA"
	var out bytes.Buffer
	log := slog.New(redact.New(held).Log(slog.NewTextHandler(&out, nil)))
	for _, secret := range []string{held, shaped} {
		log.Info("failed with " + secret)
		log.Info("x", "text", "a "+secret, "err", fmt.Errorf("dial: %w", errors.New(secret)), "list", []string{secret}, "struct", struct{ S string }{secret},
			"valuer", valuer{secret}, slog.Group("g", "deep", secret, slog.Group("deeper", "err", errors.New(secret))))
		log.With("bound", secret).WithGroup("in").With("again", errors.New(secret)).Warn("y", "z", 1)
	}
	log.Info("z", "password", "hunter2hunter2", "count", 3, "plain", "nothing here", "err", errors.New("plain failure"))
	text := out.String()
	for _, secret := range []string{held, shaped, "hunter2"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log:\n%s", secret, text)
		}
	}
	for _, kept := range []string{`plain="nothing here"`, "count=3", `err="plain failure"`, "in.z=1", "[hidden: held]", "g.deeper.err="} {
		if !strings.Contains(text, kept) {
			t.Errorf("%s is not in the log:\n%s", kept, text)
		}
	}
}
