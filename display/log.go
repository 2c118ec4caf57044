package display

import (
	"fmt"
	"io"
	"log/slog"
)

// longestLogged is how many characters of one value are logged. A client chooses much of what is logged; it must not
// choose how much disk that takes.
const longestLogged = 4096

// NewLog writes a log for people, one entry a line. Values are escaped, so that no text of a client — a header, a name, an
// error that quotes either — can start a line of its own, move the cursor of whoever reads the log in a terminal, or read
// as something else; and they are cut.
func NewLog(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: logged}))
}

// logged makes one value of an entry safe. Line breaks are left to the handler, which quotes them.
func logged(_ []string, a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch text := ""; a.Value.Kind() {
	case slog.KindString:
		text = a.Value.String()
		a.Value = slog.StringValue(Show(text, Options{Lines: true, Limit: longestLogged}).String())
	case slog.KindAny:
		if _, isSource := a.Value.Any().(*slog.Source); isSource {
			return a
		}
		text = fmt.Sprintf("%+v", a.Value.Any())
		if level, ok := a.Value.Any().(slog.Level); ok {
			text = level.String()
		}
		a.Value = slog.StringValue(Show(text, Options{Lines: true, Limit: longestLogged}).String())
	}
	return a
}
