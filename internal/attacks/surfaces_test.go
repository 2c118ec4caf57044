package attacks

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/internal/consoletest"
)

// wrongInMarkdown looks at a message as programs for Markdown read it: everything that a caller wrote stands in one block
// of code, and the block ends where we end it.
func wrongInMarkdown(message, command string) string {
	fence := regexp.MustCompile("(?m)^`{3,}$").FindString(message)
	parts := strings.Split(message, "\n"+fence+"\n")
	if fence == "" || len(parts) != 3 {
		return fmt.Sprintf("it is not one block: %q", message)
	}
	return wrongInBlock(parts, command, display.Block(command))
}

// wrongInBlock looks at a message that was taken apart: what stands before the code, the code, and what follows it.
func wrongInBlock(parts []string, command, shown string) string {
	var quoted []string
	for line := range strings.SplitSeq(parts[1], "\n") {
		if text, ok := strings.CutPrefix(line, "| "); ok {
			quoted = append(quoted, text)
		}
	}
	switch {
	case strings.Contains(parts[0], command) || strings.Contains(parts[2], command):
		return fmt.Sprintf("the command stands outside of the code: %q", parts)
	case strings.Join(quoted, "\n") != strings.TrimRight(shown, "\n"):
		return fmt.Sprintf("%q is shown as %q", shown, quoted)
	case display.HasInvisible(strings.NewReplacer("\n", "", "\t", "").Replace(strings.Join(parts, ""))):
		return "something is not visible"
	}
	return ""
}

// What chats act on inside of code, too: names that call somebody, and tokens of links, channels and names.
var actsInChat = regexp.MustCompile("@[\\pL\\pN_&!]|<[^\\s<⟧][^\\n]*>|```")

// wrongInChat looks at a message as chats read it.
func wrongInChat(message, command string) string {
	parts := strings.Split(message, "\n```\n")
	if len(parts) != 3 {
		return fmt.Sprintf("it is not one block: %q", message)
	}
	if found := actsInChat.FindString(strings.Join(parts, "\n")); found != "" {
		return fmt.Sprintf("a chat acts on %q", found)
	}
	shown, _, _ := strings.Cut(strings.TrimPrefix(display.Chat(command), "```\n"), "\n```")
	return wrongInBlock(parts, command, shown)
}

// wrongInTable looks at the record as a spreadsheet does, whichever sign it cuts cells at.
func (w *world) wrongInTable(command string) string {
	var b bytes.Buffer
	must(w.t, audit.ExportCSV(w.t.Context(), w.records(), &b, 0))
	rows, err := csv.NewReader(bytes.NewReader(b.Bytes())).ReadAll()
	if err != nil {
		return err.Error()
	}
	if lines := strings.Count(b.String(), "\n"); lines != len(rows) {
		return fmt.Sprintf("%d rows in %d lines", len(rows), lines)
	}
	for _, part := range strings.FieldsFunc(b.String(), func(r rune) bool { return strings.ContainsRune(",;|\"\t\r\n", r) }) {
		if part = strings.TrimLeft(part, " "); part != "" && strings.ContainsRune("=+-@", rune(part[0])) {
			return fmt.Sprintf("a spreadsheet computes %.80q", part)
		}
	}
	shown := display.CellOf(display.Block(fmt.Sprintf("{\"command\":%q}", command)))
	if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Contains(row, shown) }) {
		return fmt.Sprintf("the command is not in the table: %q", rows)
	}
	return ""
}

// wrongInLog writes a command into the log of the gateway.
func wrongInLog(command string) string {
	var b bytes.Buffer
	log := display.NewLog(&b, slog.LevelInfo)
	log.Info("a call", "command", command, "err", fmt.Errorf("run %s: refused", command))
	log.Info(command)
	return wrongLines(b.String(), 2)
}

// wrongLines looks for lines of a log that nobody has written, and for what is not visible in it.
func wrongLines(log string, entries int) string {
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) != entries {
		return fmt.Sprintf("%d lines of %d entries: %q", len(lines), entries, log)
	}
	for _, line := range lines {
		switch {
		case !strings.HasPrefix(line, "time="):
			return fmt.Sprintf("a line is forged: %q", line)
		case display.HasInvisible(line):
			return fmt.Sprintf("something is not visible: %q", line)
		case len(line) > 32<<10:
			return fmt.Sprintf("a line of %d bytes", len(line))
		}
	}
	return ""
}

// judgeAddress: an address in an argument, and in a command. People are told its host.
func (w *world) judgeAddress(address string, o *outcome) error {
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	_, authority, _ := strings.Cut(address, "://")
	authority = strings.ToLower(authority[:strings.IndexAny(authority+"/", "/?#")])
	disguised := strings.ContainsAny(authority, "@\\%") || strings.Contains(authority, "xn--")
	caller, _ := w.main("s1")
	for _, call := range []struct {
		tool string
		args map[string]any
	}{
		{"exec", map[string]any{"command": "curl '" + address + "'"}},
		{"write", map[string]any{"path": "notes.txt", "content": "see " + address}},
	} {
		r, a := w.question(w.newCall(caller, call.tool, call.args))
		if r == nil {
			return fmt.Errorf("nobody is shown the address: %s", a.why())
		}
		told := slices.ContainsFunc(r.Request.Reasons, func(reason string) bool {
			return strings.HasPrefix(reason, "an address leads to ") && strings.Contains(reason, host) && !display.HasInvisible(display.Line(reason))
		})
		if !told && disguised && display.Line(address) == address {
			o.found(fmt.Sprintf("nobody is told that it leads to %s: %q", host, r.Request.Reasons))
		}
	}
	o.took = w.watch.longest
	return nil
}

var (
	commandBlock = regexp.MustCompile(`(?s)aria-label="Command">(.*?)</pre>`)
	ourMarks     = regexp.MustCompile(`</?mark[^<>]*>`)
)

// wrongOnPage asks about a command in the console, and before that about a harmless one, which has the same elements.
func wrongOnPage(t *testing.T, command string) string {
	var pages []string
	for _, text := range []string{strings.Repeat("x\n", strings.Count(command, "\n")) + "x", command} {
		w := consoletest.New(t, consoletest.Options{})
		w.Call("coder", "exec", map[string]any{"command": text})
		w.AwaitPending(1)
		pages = append(pages, ourMarks.ReplaceAllString(frontPage(t, w), ""))
	}
	shown := commandBlock.FindStringSubmatch(pages[1])
	switch {
	case shown == nil:
		return "the command is not shown"
	case html.UnescapeString(shown[1]) != display.Block(command):
		return fmt.Sprintf("shown as %q", shown[1])
	case strings.Count(pages[0], "<") != strings.Count(pages[1], "<"):
		return fmt.Sprintf("the command adds elements: %s", pages[1])
	case display.HasInvisible(strings.NewReplacer("\n", "", "\t", "").Replace(pages[1])):
		return "something is not visible"
	}
	return ""
}

// frontPage is the console of a person who signs in.
func frontPage(t *testing.T, w *consoletest.World) string {
	jar, err := cookiejar.New(nil)
	must(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browser := &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	form := url.Values{"passphrase": {consoletest.Passphrase}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/sign-in", strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", w.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := browser.Do(r)
	must(t, err)
	answer.Body.Close()
	if r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+answer.Header.Get("Location"), nil); err != nil {
		t.Fatal(err)
	}
	answer, err = browser.Do(r)
	must(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("the console answers %d: %s", answer.StatusCode, page)
	}
	return string(page)
}
