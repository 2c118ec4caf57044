package builtin

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

const readSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "File to read; relative paths start at the working directory."},
    "offset": {"type": "integer", "minimum": 1, "description": "First line to show, from 1."},
    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

// readPlan is what read hands from Facts to Run.
type readPlan struct {
	asked  string
	places located
	file   place.Resolved
	offset int // first line, from 1
	limit  int
}

func (b *Toolbox) readTool() *toolward.Tool {
	return &toolward.Tool{
		Name: "read",
		Description: fmt.Sprintf("Reads a text file, at most %d lines at once; use offset and limit for more. "+
			"PNG, JPEG, GIF and WebP files come back as images. Directories are shown by list.", b.cfg.ReadLines),
		Schema: json.RawMessage(readSchema),
		Facts:  b.readFacts,
		Run:    b.read,
	}
}

func (b *Toolbox) readFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan := readPlan{asked: r.Params.Text("path"), places: at, offset: 1, limit: b.cfg.ReadLines}
	file, target, err := at.target("path", plan.asked, toolward.OpRead)
	if err != nil {
		return toolward.Facts{}, err
	}
	if err := at.mustBeFile("path", file, false); err != nil {
		return toolward.Facts{}, err
	}
	plan.file = file
	if n, ok := r.Params.Int("offset"); ok {
		plan.offset = int(max(n, 1))
	}
	if n, ok := r.Params.Int("limit"); ok {
		plan.limit = int(min(max(n, 1), int64(b.cfg.ReadLines)))
	}
	return toolward.Facts{Targets: []toolward.Target{target}, Sandbox: at.sandbox(), Bound: at.bound(), Prepared: plan}, nil
}

// errNotPrepared means that a call was run without its facts: a mistake in the gateway, never in a call.
var errNotPrepared = errors.New("the call was not prepared")

func (b *Toolbox) read(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(readPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer release()
	file, err := on.open(plan.file)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	// One buffer for the look at the beginning and for the lines; small files, which most are, get a small one.
	rest := bufio.NewReaderSize(file, int(min(max(info.Size()+1, 4<<10), 64<<10)))
	head, err := rest.Peek(min(8<<10, rest.Size()))
	if err != nil && !errors.Is(err, io.EOF) {
		return fileFailure(plan.asked, err), nil
	}
	if mime := imageType(head); mime != "" {
		return b.readImage(plan, mime, rest, info.Size())
	}
	notes := readNotes{}
	switch found := detectEncoding(head); found {
	case encodingBinary:
		return failed("%s is a binary file of %d bytes, not a text", plan.asked, info.Size()), nil
	case encodingUTF16LE, encodingUTF16BE:
		data, err := io.ReadAll(io.LimitReader(rest, int64(b.cfg.FileBytes)+1))
		if err != nil {
			return fileFailure(plan.asked, err), nil
		}
		if len(data) > b.cfg.FileBytes {
			return failed("%s is a %s text of more than %d bytes, too large to be converted", plan.asked, found, b.cfg.FileBytes), nil
		}
		var order binary.ByteOrder = binary.LittleEndian
		if found == encodingUTF16BE {
			order = binary.BigEndian
		}
		rest = bufio.NewReader(strings.NewReader(decodeUTF16(data, order)))
		notes.encoding = found
	}
	return b.readLines(ctx, plan, rest, notes)
}

func imageType(head []byte) string {
	switch mime := http.DetectContentType(head); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime
	}
	return ""
}

func (b *Toolbox) readImage(plan readPlan, mime string, from io.Reader, size int64) (toolward.Result, error) {
	if size > int64(b.cfg.ImageBytes) {
		return failed("%s is an image of %d bytes, more than %d", plan.asked, size, b.cfg.ImageBytes), nil
	}
	data, err := io.ReadAll(io.LimitReader(from, int64(b.cfg.ImageBytes)+1))
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	if len(data) > b.cfg.ImageBytes {
		return failed("%s is an image of more than %d bytes", plan.asked, b.cfg.ImageBytes), nil
	}
	return toolward.Result{Content: []toolward.Content{
		{Text: fmt.Sprintf("%s: %s, %d bytes", plan.asked, mime, len(data))},
		{MIME: mime, Data: data},
	}}, nil
}

// readNotes is what a reader should know beside the lines themselves.
type readNotes struct {
	encoding encoding // if converted
	badBytes int      // not valid UTF-8, shown as U+FFFD
	cutLines int
	crlf     bool
	more     int // number of the next line, 0 at the end of the file
	full     bool
}

// readLines shows the lines that were asked for, within the limits of lines and bytes.
func (b *Toolbox) readLines(ctx context.Context, plan readPlan, from *bufio.Reader, notes readNotes) (toolward.Result, error) {
	lines := lineReader{r: from, keep: 4 * b.cfg.ReadLineChars, budget: int64(b.cfg.ReadScanBytes)}
	for number := 1; number < plan.offset; number++ {
		if number%4096 == 0 && ctx.Err() != nil {
			return toolward.Result{}, ctx.Err()
		}
		switch _, err := lines.next(); {
		case errors.Is(err, io.EOF):
			return failed("offset %d is beyond the end of %s, which has %d lines", plan.offset, plan.asked, number-1), nil
		case errors.Is(err, errBudget):
			return failed("line %d of %s is beyond the first %d bytes that are looked through; use search", plan.offset, plan.asked, b.cfg.ReadScanBytes), nil
		case err != nil:
			return fileFailure(plan.asked, err), nil
		}
	}
	var out strings.Builder
	shown := 0
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errBudget) {
			return fileFailure(plan.asked, err), nil
		}
		if errors.Is(err, errBudget) || shown == plan.limit || out.Len()+len(line.text) > b.cfg.ReadBytes {
			notes.more, notes.full = plan.offset+shown, shown < plan.limit
			break
		}
		out.WriteString(b.shownLine(line, &notes, plan.offset+shown == 1))
		out.WriteByte('\n')
		shown++
	}
	if shown == 0 && notes.more == 0 {
		if plan.offset > 1 {
			return failed("offset %d is beyond the end of %s, which has %d lines", plan.offset, plan.asked, plan.offset-1), nil
		}
		return toolward.TextResult("(the file is empty)"), nil
	}
	return toolward.TextResult(out.String() + notes.text(plan.offset, plan.offset+shown-1)), nil
}

// shownLine is a line as it is shown: without its line end and byte order mark, valid UTF-8, not too long.
func (b *Toolbox) shownLine(line rawLine, notes *readNotes, first bool) string {
	text := string(line.text)
	if strings.HasSuffix(text, "\r") {
		text = text[:len(text)-1]
		notes.crlf = true
	}
	if first {
		text = strings.TrimPrefix(text, byteOrderMark)
	}
	cut := line.length > len(line.text)
	if cut {
		for !utf8.ValidString(text) && len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1] // half a character at the cut
		}
	}
	text, bad := validText(text)
	notes.badBytes += bad
	if utf8.RuneCountInString(text) > b.cfg.ReadLineChars {
		text, cut = text[:runeOffset(text, b.cfg.ReadLineChars)], true
	}
	if cut {
		notes.cutLines++
		text += fmt.Sprintf(" [… line of %d bytes, cut]", line.length)
	}
	return text
}

// text is the note below the lines; "" if there is nothing to say.
func (n readNotes) text(first, last int) string {
	var parts []string
	if n.more > 0 {
		why := ""
		if n.full {
			why = " because of their size"
		}
		parts = append(parts, fmt.Sprintf("lines %d to %d shown%s, more follow: use offset %d", first, max(last, first-1), why, n.more))
	}
	if n.encoding != "" {
		parts = append(parts, "converted from "+string(n.encoding))
	}
	if n.badBytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes are not valid UTF-8 and are shown as \ufffd", n.badBytes))
	}
	if n.crlf {
		parts = append(parts, "lines end with CRLF")
	}
	if n.cutLines > 0 {
		parts = append(parts, fmt.Sprintf("%d long lines cut", n.cutLines))
	}
	if len(parts) == 0 {
		return ""
	}
	return "\n[" + strings.Join(parts, "; ") + "]\n"
}

// errBudget means that a file was looked through as far as is allowed.
var errBudget = errors.New("looked through as much as is allowed")

// lineReader reads lines of any length in bounded memory and time.
type lineReader struct {
	r      *bufio.Reader
	keep   int   // bytes of a line that are kept
	budget int64 // bytes that may still be read
	buf    []byte
}

// rawLine is a line without its line feed, valid until the next one is read.
type rawLine struct {
	text   []byte // the kept beginning
	length int    // of the whole line, in bytes
}

// next returns the next line; io.EOF after the last.
func (l *lineReader) next() (rawLine, error) {
	l.buf = l.buf[:0]
	line := rawLine{}
	for {
		part, err := l.r.ReadSlice('\n')
		l.budget -= int64(len(part))
		ended := len(part) > 0 && part[len(part)-1] == '\n'
		if ended {
			part = part[:len(part)-1]
		}
		line.length += len(part)
		if room := l.keep - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		line.text = l.buf
		switch {
		case l.budget < 0:
			return line, errBudget
		case ended:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && line.length > 0:
			return line, nil
		case err != nil:
			return line, err
		}
	}
}
