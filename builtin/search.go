package builtin

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/place"
)

const searchSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "Regular expression (RE2 syntax), matched against single lines."},
    "path": {"type": "string", "description": "File or directory to search; default is the working directory."},
    "glob": {
      "description": "Only files whose path matches, such as *.go or src/**/*.ts; !pattern excludes. One or several.",
      "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "maxItems": 50}]
    },
    "literal": {"type": "boolean", "description": "The pattern is a plain text."},
    "ignoreCase": {"type": "boolean"},
    "context": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Lines to show around each match."},
    "output": {"type": "string", "enum": ["lines", "files", "count"], "description": "Matching lines (default), only the files, or the number of lines in each."},
    "limit": {"type": "integer", "minimum": 1, "description": "How many matching lines (or files) to show."},
    "ignored": {"type": "boolean", "description": "Also files that .gitignore excludes."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

// searchPlan is what search hands from Facts to Run.
type searchPlan struct {
	asked   string
	places  located
	target  place.Resolved
	globs   []string
	expr    string
	context int
	output  string
	limit   int
	all     bool
}

func (b *Toolbox) searchTool() *toolward.Tool {
	return &toolward.Tool{
		Name: "search",
		Description: "Finds lines that match a regular expression in the text files below a directory. Leaves out what .gitignore excludes, " +
			"binary files, and files that hold secrets (and says so).",
		Schema: json.RawMessage(searchSchema),
		Facts:  b.searchFacts,
		Run:    b.search,
	}
}

func (b *Toolbox) searchFacts(ctx context.Context, r *toolward.Request) (toolward.Facts, error) {
	at, err := b.locate(ctx, r)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan := searchPlan{asked: pathOrHere(r.Params), places: at, output: "lines", limit: b.cfg.SearchMatches, expr: r.Params.Text("pattern")}
	target, fact, err := at.target("path", plan.asked, toolward.OpRead)
	if err != nil {
		return toolward.Facts{}, err
	}
	plan.target = target
	if plan.globs, err = globsOf(r.Params.Value("glob")); err != nil {
		return toolward.Facts{}, err
	}
	if literal, _ := r.Params.Bool("literal"); literal {
		plan.expr = regexp.QuoteMeta(plan.expr)
	}
	if fold, _ := r.Params.Bool("ignoreCase"); fold {
		plan.expr = "(?i:" + plan.expr + ")"
	}
	if n, ok := r.Params.Int("context"); ok {
		plan.context = int(min(max(n, 0), 20))
	}
	if n, ok := r.Params.Int("limit"); ok {
		plan.limit = int(min(max(n, 1), int64(b.cfg.SearchMatches)))
	}
	if output := r.Params.Text("output"); output != "" {
		plan.output = output
	}
	plan.all, _ = r.Params.Bool("ignored")
	return toolward.Facts{Targets: []toolward.Target{fact}, Sandbox: at.sandbox(), Bound: at.bound(), Prepared: plan}, nil
}

func globsOf(value any) ([]string, error) {
	var globs []string
	switch value := value.(type) {
	case nil:
	case string:
		globs = []string{value}
	case []any:
		for _, item := range value {
			glob, ok := item.(string)
			if !ok {
				return nil, &toolward.InvalidArgs{Field: "glob", Text: "is a text or a list of texts"}
			}
			globs = append(globs, glob)
		}
	}
	for _, glob := range globs {
		if pattern := strings.TrimPrefix(glob, "!"); pattern == "" || len(pattern) > 500 || !doublestar.ValidatePattern(pattern) {
			return nil, &toolward.InvalidArgs{Field: "glob", Text: "has a pattern that is empty, too long or malformed; use *, **, ?, [a-z] and {a,b}"}
		}
	}
	return globs, nil
}

// wanted reports whether the globs let a path through: some pattern without ! matches, or there is none, and no
// pattern with ! does. A pattern without a slash is matched against the name alone.
func wanted(globs []string, rel string) bool {
	found, positive := false, false
	for _, glob := range globs {
		pattern, negated := strings.CutPrefix(glob, "!")
		name := rel
		if !strings.Contains(pattern, "/") {
			name = path.Base(rel)
		}
		ok, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), name)
		ok = ok && err == nil
		if negated && ok {
			return false
		}
		positive = positive || !negated
		found = found || (!negated && ok)
	}
	return found || !positive
}

func (b *Toolbox) search(ctx context.Context, r *toolward.Request) (toolward.Result, error) {
	plan, ok := r.Facts.Prepared.(searchPlan)
	if !ok {
		return toolward.Result{}, errNotPrepared
	}
	match, err := newMatcher(plan.expr)
	if err != nil {
		return failed("The pattern is not valid: %v", err), nil
	}
	on, release, err := plan.places.disk(ctx)
	if err != nil {
		return fileFailure(plan.asked, err), nil
	}
	defer release()
	walk := walker{places: plan.places, disk: on, level: r.Level, root: plan.target, ignored: plan.all, budget: b.cfg.SearchFiles}
	s := searching{box: b, plan: plan, match: match, walk: &walk}
	switch plan.target.Kind {
	case place.KindRegular:
		file, err := on.open(plan.target)
		if err != nil {
			return fileFailure(plan.asked, err), nil
		}
		s.file(file, plan.asked)
	case place.KindDirectory:
		dir, err := walk.start()
		if err != nil {
			return fileFailure(plan.asked, err), nil
		}
		if err := s.directory(ctx, dir); err != nil {
			return toolward.Result{}, err
		}
	case place.KindMissing:
		return failed("%s does not exist", plan.asked), nil
	default:
		return failed("%s is a %s", plan.asked, plan.target.Kind), nil
	}
	return toolward.TextResult(s.result()), nil
}

// searching is one run of search.
type searching struct {
	box   *Toolbox
	plan  searchPlan
	match *matcher
	walk  *walker
	out   strings.Builder
	buf   []byte

	lines, files     int // that matched
	shown            int // lines or files
	full             bool
	binary, tooLarge int
}

// directory searches everything below dir and closes it.
func (s *searching) directory(ctx context.Context, dir *walkedDir) error {
	defer dir.file.Close()
	entries, err := s.walk.entries(ctx, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.full {
			return nil
		}
		if time.Now().After(s.walk.deadline) {
			s.walk.exhausted = true
		}
		switch {
		case entry.kind.IsDir():
			if s.walk.exhausted || len(entry.rel) > 4096 || strings.Count(entry.rel, "/") > 100 {
				s.walk.exhausted = true
				continue
			}
			if child := s.walk.open(dir, entry); child != nil {
				if err := s.directory(ctx, child); err != nil {
					return err
				}
			}
		case entry.kind.IsRegular():
			s.entry(dir, entry)
		}
	}
	return nil
}

func (s *searching) entry(dir *walkedDir, entry walkedEntry) {
	if !wanted(s.plan.globs, entry.rel) {
		return
	}
	if !s.walk.enters(dir.real + "/" + entry.name) {
		s.walk.guarded = append(s.walk.guarded, entry.rel)
		return
	}
	file, err := dir.file.child(entry.name)
	if err != nil {
		s.walk.unread++
		return
	}
	s.file(file, entry.rel)
}

// file searches an open file and closes it.
func (s *searching) file(file fs.File, name string) {
	defer file.Close()
	text, ok := s.content(file)
	if !ok {
		return
	}
	found := s.match.lines(text, s.plan.output == "files")
	if len(found) == 0 {
		return
	}
	s.files++
	s.lines += len(found)
	switch s.plan.output {
	case "files":
		s.line(shownName(name) + "\n")
	case "count":
		s.line(fmt.Sprintf("%s: %d\n", shownName(name), len(found)))
	default:
		s.show(text, name, found)
	}
	s.full = s.full || s.shown >= s.plan.limit
}

// content reads a whole file into the common buffer. False: it is binary, too large or cannot be read.
func (s *searching) content(file fs.File) ([]byte, bool) {
	limit := int64(s.box.cfg.FileBytes)
	info, err := file.Stat()
	if err != nil {
		s.walk.unread++
		return nil, false
	}
	if info.Size() > limit {
		s.tooLarge++
		return nil, false
	}
	buf := bytes.NewBuffer(s.buf[:0])
	_, err = buf.ReadFrom(io.LimitReader(file, limit+1))
	s.buf = buf.Bytes()
	switch {
	case err != nil:
		s.walk.unread++
		return nil, false
	case int64(len(s.buf)) > limit:
		s.tooLarge++
		return nil, false
	}
	switch detectEncoding(s.buf[:min(len(s.buf), 8192)]) {
	case encodingBinary:
		s.binary++
		return nil, false
	case encodingUTF16LE:
		return []byte(decodeUTF16(s.buf, binary.LittleEndian)), true
	case encodingUTF16BE:
		return []byte(decodeUTF16(s.buf, binary.BigEndian)), true
	}
	return bytes.TrimPrefix(s.buf, []byte(byteOrderMark)), true
}

// line adds one line of the result that counts against the limit.
func (s *searching) line(text string) {
	if s.shown >= s.plan.limit || s.out.Len()+len(text) > s.box.cfg.SearchChars {
		s.full = true
		return
	}
	s.out.WriteString(text)
	s.shown++
}

// show writes the matching lines of a file with their context: matches as "12: text", context as "12- text".
func (s *searching) show(text []byte, name string, found []foundLine) {
	heading := shownName(name) + "\n"
	if s.out.Len() > 0 {
		heading = "\n" + heading
	}
	if s.out.Len()+len(heading) > s.box.cfg.SearchChars {
		s.full = true
		return
	}
	s.out.WriteString(heading)
	last := 0 // number of the last line written
	for i, match := range found {
		for _, around := range linesBefore(text, match, max(last, match.number-s.plan.context-1)) {
			last = s.contextLine(text, around, last)
		}
		if last > 0 && match.number > last+1 && s.plan.context > 0 {
			s.out.WriteString("--\n")
		}
		s.line(fmt.Sprintf("%d: %s\n", match.number, s.cut(text[match.start:match.end], match.at-match.start)))
		if s.full {
			return
		}
		last = match.number
		until := match.number + s.plan.context
		if i+1 < len(found) {
			until = min(until, found[i+1].number-1)
		}
		for _, around := range linesAfter(text, match, until) {
			last = s.contextLine(text, around, last)
		}
	}
}

func (s *searching) contextLine(text []byte, line foundLine, last int) int {
	if last > 0 && line.number > last+1 {
		s.out.WriteString("--\n")
	}
	if shown := fmt.Sprintf("%d- %s\n", line.number, s.cut(text[line.start:line.end], 0)); s.out.Len()+len(shown) <= s.box.cfg.SearchChars {
		s.out.WriteString(shown)
	}
	return line.number
}

// cut shows at most a few hundred bytes of a line, around the match.
func (s *searching) cut(line []byte, at int) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	width := min(500, s.box.cfg.ReadLineChars)
	before, after := "", ""
	if len(line) > width {
		from := max(0, min(at-width/4, len(line)-width))
		for from > 0 && !utf8.RuneStart(line[from]) {
			from--
		}
		to := from + width
		for to < len(line) && !utf8.RuneStart(line[to]) {
			to++
		}
		if from > 0 {
			before = "… "
		}
		if to < len(line) {
			after = " …"
		}
		line = line[from:to]
	}
	text, _ := validText(string(line))
	return before + strings.Map(func(r rune) rune {
		if isShown(r) {
			return r
		}
		return '\ufffd'
	}, text) + after
}

func (s *searching) result() string {
	notes := s.walk.notes()
	if s.full {
		notes = append(notes, "there may be more matches: narrow the pattern, the path or the glob")
	}
	if s.binary > 0 {
		notes = append(notes, fmt.Sprintf("%d binary %s left out", s.binary, plural(s.binary, "file")))
	}
	if s.tooLarge > 0 {
		notes = append(notes, fmt.Sprintf("%d %s larger than %d bytes left out", s.tooLarge, plural(s.tooLarge, "file"), s.box.cfg.FileBytes))
	}
	if s.out.Len() == 0 {
		return "No matches.\n" + noteText(notes)
	}
	return s.out.String() + noteText(notes)
}
