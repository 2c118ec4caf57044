package display

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

type label struct{ text string }

func (l label) LogValue() slog.Value { return slog.StringValue(l.text) }

func TestLogCannotBeForged(t *testing.T) {
	const hostile = "a\r\ntime=2026-01-01 level=INFO msg=allowed\x1b[2J\u202e\u200bс" + "at"
	var b bytes.Buffer
	log := NewLog(&b, slog.LevelInfo)
	log.With("bound", hostile).WithGroup(hostile).Warn(hostile, "text", hostile, "err", errors.New(hostile),
		"list", []string{hostile}, "valuer", label{hostile}, "struct", struct{ S string }{hostile}, hostile, 1, slog.Group("g", "deep", hostile))
	out := b.String()
	if n := strings.Count(out, "\n"); n != 1 || !strings.HasSuffix(out, "\n") {
		t.Errorf("%d lines: %q", n, out)
	}
	if plain := strings.TrimSuffix(out, "\n"); HasInvisible(plain) || strings.Contains(plain, "msg=allowed\x1b") {
		t.Errorf("not visible: %q", plain)
	}
	if !strings.Contains(out, "level=WARN") || strings.Contains(out, " level=INFO msg=allowed ") {
		t.Errorf("%q", out)
	}
}

func TestLogIsCut(t *testing.T) {
	var b bytes.Buffer
	NewLog(&b, slog.LevelInfo).Info("x", "agent", strings.Repeat("a", 1<<20), "err", errors.New(strings.Repeat("b", 1<<20)))
	if b.Len() > 3*longestLogged || !strings.Contains(b.String(), "characters not shown") {
		t.Errorf("%d bytes", b.Len())
	}
}
