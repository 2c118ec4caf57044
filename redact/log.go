package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Log returns a handler that hides secrets in what another one writes: in messages, which may quote what failed, and in values.
func (r *Redactor) Log(next slog.Handler) slog.Handler { return &logHandler{r, next} }

type logHandler struct {
	redact *Redactor
	next   slog.Handler
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, entry slog.Record) error {
	clean := slog.NewRecord(entry.Time, entry.Level, h.redact.String(entry.Message), entry.PC)
	entry.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, 0, len(attrs))
	for _, a := range attrs {
		clean = append(clean, h.attr(a))
	}
	return &logHandler{h.redact, h.next.WithAttrs(clean)}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.redact, h.next.WithGroup(name)}
}

// attr hides what is a secret by itself, or by the name that it goes under.
func (h *logHandler) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	text := ""
	switch a.Value.Kind() {
	case slog.KindGroup:
		group := a.Value.Group()
		clean := make([]slog.Attr, 0, len(group))
		for _, one := range group {
			clean = append(clean, h.attr(one))
		}
		a.Value = slog.GroupValue(clean...)
		return a
	case slog.KindString:
		text = a.Value.String()
	case slog.KindAny:
		text = fmt.Sprintf("%+v", a.Value.Any()) // as handlers write it
	default:
		return a // numbers, times
	}
	if clean, found := h.redact.leaf(a.Key, text); found {
		a.Value = slog.StringValue(clean)
	}
	return a
}
