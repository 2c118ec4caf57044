package transcript

import (
	"database/sql"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"time"
)

// opencode keeps everything in opencode.db, SQLite, since 1.2 (seen with 1.18.34). Before that each session, message and part
// of a message was a file of JSON below storage/; a newer version leaves those where they are, and takes their calls along.

func opencodeOwns(name string) bool {
	if dir, base := path.Split(name); dir == "" {
		return strings.HasPrefix(base, "opencode") && path.Ext(base) == ".db"
	}
	return strings.HasPrefix(name, "storage/session/") && path.Ext(name) == ".json"
}

// opencodeBegins: the database, or a session of the older form.
func opencodeBegins(head []byte) bool {
	text := string(head)
	return strings.HasPrefix(text, "SQLite format 3\x00") || strings.HasPrefix(text, "{") && strings.Contains(text, `"ses_`) && strings.Contains(text, `"directory"`)
}

func (f *file) opencode() error {
	if path.Ext(f.path) == ".db" {
		return f.opencodeDatabase()
	}
	return f.opencodeFiles()
}

// opencodePart is a part of a message, as far as calls go.
type opencodePart struct {
	Type   string `json:"type"`
	Tool   string `json:"tool"`
	CallID string `json:"callID"`
	State  struct {
		Input json.RawMessage `json:"input"`
		Time  struct {
			Start int64 `json:"start"`
		} `json:"time"`
	} `json:"state"`
}

// opencodeCalls has the calls of all sessions, and nothing of what tools answered. Parts that are not JSON come with an empty tool.
const opencodeCalls = `
SELECT p.session_id, s.parent_id IS NOT NULL, s.directory, p.time_created,
       coalesce(json_extract(p.data, '$.tool'), ''), coalesce(json_extract(p.data, '$.callID'), p.id), coalesce(json_extract(p.data, '$.state.input'), '')
FROM part p JOIN session s ON s.id = p.session_id
WHERE length(p.data) <= 67108864 AND json_valid(p.data) AND json_extract(p.data, '$.type') = 'tool'`

// opencodeUnread counts the parts that the query above leaves out because nobody can say what they are.
const opencodeUnread = `SELECT count(*) FROM part WHERE length(data) > 67108864 OR NOT json_valid(data)`

func (f *file) opencodeDatabase() error {
	db, err := f.database()
	if err != nil {
		return err
	}
	defer db.Close()
	unread := 0
	if err := db.QueryRowContext(f.ctx, opencodeUnread).Scan(&unread); err != nil {
		if strings.Contains(err.Error(), "no such") {
			return errFormat
		}
		return err
	}
	for range unread {
		f.odd(oddCall)
	}
	rows, err := db.QueryContext(f.ctx, opencodeCalls)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f.opencodeRow(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f *file) opencodeRow(rows *sql.Rows) error {
	var c Call
	var child bool
	var input string
	var created int64
	if err := rows.Scan(&c.Session, &child, &c.Project, &created, &c.Tool, &c.ID, &input); err != nil {
		return err
	}
	c.Time, c.Arguments = time.UnixMilli(created), json.RawMessage(input)
	return f.opencodeCall(&c, child)
}

// opencodeCall visits a call in the directory in which it ran.
func (f *file) opencodeCall(c *Call, child bool) error {
	c.WorkDir = c.Project
	if child {
		c.Agent = "subagent"
	}
	var where struct {
		Dir string `json:"workdir"`
	}
	if c.Tool == "bash" && json.Unmarshal(c.Arguments, &where) == nil && where.Dir != "" {
		c.WorkDir = directoryFrom(c.Project, where.Dir)
	}
	return f.visit(c)
}

// opencodeFiles reads the parts of a session that is a file beside them.
func (f *file) opencodeFiles() error {
	var session struct {
		ID        string `json:"id"`
		Directory string `json:"directory"`
		Parent    string `json:"parentID"`
	}
	if json.Unmarshal(f.document(f.path), &session) != nil || session.ID == "" || strings.ContainsAny(session.ID, "/\\") {
		return errFormat
	}
	storage := path.Dir(path.Dir(path.Dir(f.path)))
	return f.each(path.Join(storage, "message", session.ID), func(message string) error {
		id := strings.TrimSuffix(path.Base(message), ".json")
		return f.each(path.Join(storage, "part", id), func(part string) error {
			var p opencodePart
			if json.Unmarshal(f.document(part), &p) != nil {
				f.note(oddLine, part)
				return nil
			}
			if p.Type != "tool" {
				return nil
			}
			c := &Call{Session: session.ID, Project: session.Directory, ID: p.CallID, Tool: p.Tool, Arguments: p.State.Input}
			if p.State.Time.Start > 0 {
				c.Time = time.UnixMilli(p.State.Time.Start)
			}
			return f.opencodeCall(c, session.Parent != "")
		})
	})
}

// each gives the files of a directory below the root to a function. What is not there has none.
func (f *file) each(dir string, visit func(path string) error) error {
	entries, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		return nil //nolint:nilerr // a session without messages, or one that is being made
	}
	for _, entry := range entries {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if !entry.Type().IsRegular() || path.Ext(entry.Name()) != ".json" {
			continue
		}
		if err := visit(path.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
