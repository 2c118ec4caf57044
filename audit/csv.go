package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/toolward/toolward/display"
)

// csvColumns is the first line of [ExportCSV].
var csvColumns = []string{"seq", "time", "type", "ref", "agent", "session", "tool", "verdict", "status", "code", "level", "text", "error", "data"}

// longestCell is less than what spreadsheets keep of a cell: they would cut the rest without a word.
const longestCell = 30_000

// ExportCSV writes the records from a position on as a table for spreadsheets, oldest first. It is for reading: texts are
// escaped so that no cell is a formula, and long ones are cut with a mark. What can be verified is [Export].
func ExportCSV(ctx context.Context, source Source, w io.Writer, from int64) error {
	line := csvLine(nil, csvColumns)
	if _, err := w.Write(line); err != nil {
		return fmt.Errorf("export the audit log: %w", err)
	}
	err := source.Scan(ctx, from, func(r *Record) error {
		cells, err := csvCells(r)
		if err != nil {
			return err
		}
		line = csvLine(line[:0], cells)
		_, err = w.Write(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("export the audit log: %w", err)
	}
	return nil
}

// csvCells are the cells of a record, in the order of csvColumns.
func csvCells(r *Record) ([]string, error) {
	var rest struct {
		Code, Level, Preview, Error string
		Data                        json.RawMessage
	}
	if err := json.Unmarshal([]byte(r.JSON), &rest); err != nil {
		return nil, fmt.Errorf("record %d: %w", r.Seq, err)
	}
	ref := ""
	if r.Ref != 0 {
		ref = strconv.FormatInt(r.Ref, 10)
	}
	return []string{
		strconv.FormatInt(r.Seq, 10), r.Time.UTC().Format(timeFormat), string(r.Type), ref, r.Agent, r.Session, r.Tool, r.Verdict, r.Status,
		rest.Code, rest.Level, rest.Preview, rest.Error, string(rest.Data),
	}, nil
}

// csvLine appends a line. Every cell is quoted: whether a sign separates cells depends on who opens the table.
func csvLine(b []byte, cells []string) []byte {
	for i, cell := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(csvText(cell), `"`, `""`)...)
		b = append(b, '"')
	}
	return append(b, '\r', '\n')
}

// csvText makes a text of a record safe. The log has escaped it when it was recorded; what somebody put into the log
// past that is escaped here.
func csvText(text string) string {
	switch {
	case display.HasInvisible(text):
		return display.CellOf(display.Show(text, display.Options{Limit: longestCell}).String())
	case len(text) > longestCell:
		return display.CellOf(strings.ToValidUTF8(text[:longestCell], "")) + fmt.Sprintf("⟦… %d bytes not shown …⟧", len(text)-longestCell)
	}
	return display.CellOf(text)
}
