package builtin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolward/toolward"
)

// commandInput is what a call sends to a command, encoded once: people are shown it and it is what is sent.
type commandInput struct {
	data     []byte
	submit   bool     // the end of a line follows, as the command's input takes it
	eof      bool     // the input is closed afterwards
	warnings []string // what is not sent as the call asked
	typed    []string // the texts in it, for those who look for secrets
}

// readInput encodes the parameters of write, submit, send-keys and paste.
func readInput(action string, p toolward.Params) (commandInput, error) {
	in, field := commandInput{}, "data"
	switch action {
	case "write", "submit":
		text := p.Text("data")
		in.data, in.typed, in.submit = []byte(text), []string{text}, action == "submit"
		if action == "write" {
			in.eof, _ = p.Bool("eof")
		}
	case "send-keys":
		field = "keys"
		keys := keySequence{literal: p.Text("literal"), hex: texts(p, "hex"), keys: texts(p, "keys")}
		var err error
		if in.data, in.warnings, err = keys.encode(); err != nil {
			text := err.Error() + "; give literal, hex or keys"
			return in, &toolward.InvalidArgs{Field: field, Text: strings.Join(append(in.warnings, text), "; ")}
		}
		in.typed = typedTexts(in.data)
	case "paste":
		field = "text"
		bracketed, given := p.Bool("bracketed")
		var err error
		if in.data, err = encodePaste(p.Text("text"), bracketed || !given); err != nil {
			return in, &toolward.InvalidArgs{Field: field, Text: err.Error()}
		}
		in.typed = []string{p.Text("text")}
	}
	if len(in.data) > maxInput {
		return in, &toolward.InvalidArgs{Field: field, Text: fmt.Sprintf("is longer than %d bytes", maxInput)}
	}
	return in, nil
}

// texts returns the texts of a list parameter.
func texts(p toolward.Params, name string) []string {
	values, _ := p.Value(name).([]any)
	list := make([]string, 0, len(values))
	for _, value := range values {
		text, _ := value.(string)
		list = append(list, text)
	}
	return list
}

// typedTexts returns what keys type, whole and without what moves the cursor: a secret must not pass unseen because
// its letters are single keys or have cursor keys between them.
func typedTexts(data []byte) []string {
	whole := strings.ToValidUTF8(string(data), string(unicode.ReplacementChar))
	typed := new(cleaner).feed(data)
	if typed == whole || typed == "" {
		return []string{whole}
	}
	return []string{whole, typed}
}

// processDiff shows people what an input is for: the text alone does not say what will read it.
func (b *Toolbox) processDiff(_ context.Context, r *toolward.Request) (string, error) {
	plan, ok := r.Facts.Prepared.(processPlan)
	if !ok {
		return "", errNotPrepared
	}
	if plan.found == nil {
		return "", errNoSession
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Session %s runs in %s:\n", plan.id, plan.found.dir)
	for line := range strings.Lines(plan.found.text) {
		out.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
	}
	if len(plan.input.data) > 0 {
		out.WriteString("Input:\n")
		for line := range strings.Lines(string(plan.input.data)) {
			out.WriteString("+" + shownInput(strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	for _, warning := range plan.input.warnings {
		out.WriteString("Note: " + warning + "\n")
	}
	text := out.String()
	if len(text) > maxDiff {
		text = text[:maxDiff-len(diffCut)] + diffCut
	}
	return text, nil
}

// shownInput is a line of input as it is, or quoted if it holds control or invisible characters: those are keys. A
// carriage return that is not seen runs a command line, and one that a screen obeys hides what is before it.
func shownInput(line string) string {
	plain := utf8.ValidString(line) && !strings.HasPrefix(line, `"`) && strings.IndexFunc(line, func(r rune) bool {
		return r != '\t' && !strconv.IsPrint(r)
	}) < 0
	if plain {
		return line
	}
	return strconv.Quote(line)
}

// inputDetails is the structured result of what writes to a command.
type inputDetails struct {
	Status    string   `json:"status"`
	SessionID string   `json:"sessionId"`
	Bytes     int      `json:"bytes"`
	Warnings  []string `json:"warnings,omitempty"`
}

// send writes input to a command.
func (in commandInput) send(s *session) toolward.Result {
	if !s.running() {
		return failed("Session %s has ended; it takes no input.", s.id)
	}
	data := in.data
	if in.submit {
		lineEnd := byte('\n')
		if s.tty {
			lineEnd = '\r' // what the return key sends
		}
		data = append(data[:len(data):len(data)], lineEnd)
	}
	var err error
	if len(data) > 0 {
		err = s.input(data, inputWait)
	}
	if in.eof {
		err = errors.Join(err, s.endInput(inputWait))
	}
	if err != nil {
		return failed("Session %s: %v.", s.id, err)
	}
	text := fmt.Sprintf("Wrote %d bytes to session %s", len(data), s.id)
	if in.eof {
		text += " and closed its input"
	}
	text += "."
	for _, warning := range in.warnings {
		text += "\nWarning: " + warning + "."
	}
	return withDetails(toolward.TextResult(text), inputDetails{s.status(), s.id, len(data), in.warnings})
}
