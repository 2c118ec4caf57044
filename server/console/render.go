package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"
)

//go:embed web
var webFiles embed.FS

// favicon is the mark as a data URL: one request less, and img-src allows nothing from elsewhere.
const favicon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Cpath d='M16 2 27.5 6.4v8.4c0 7.2-4.8 12.5-11.5 15.2C9.3 27.3 4.5 22 4.5 14.8V6.4z' fill='%230f6b57'/%3E%3Cpath d='M11.5 21.5v-6.5a4.5 4.5 0 0 1 9 0v6.5M16 21.5v-5' fill='none' stroke='%23fff' stroke-width='2.2' stroke-linecap='round'/%3E%3C/svg%3E"

// templates are parsed at the first page, not at start: a daemon that only serves agents never pays for them.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"icon":    func() template.URL { return favicon },
		"version": webVersion,
	}).ParseFS(webFiles, "web/*.html"))
})

// webVersion names the embedded files' content, so that browsers may keep them for ever.
var webVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(webFiles, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := webFiles.ReadFile(name)
		sum.Write(data)
		return err
	})
	if err != nil {
		panic("embedded console files: " + err.Error()) // cannot happen: they are part of the binary
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
})

// renderPage answers with a page. It is rendered whole before anything is sent: half a card with an "Allow" button
// and no reasons must never be seen.
func renderPage(w http.ResponseWriter, status int, name string, data any) error {
	var buf bytes.Buffer
	if err := templates().ExecuteTemplate(&buf, name, data); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // a vanished browser is no error of ours
	return nil
}

// renderPart renders one part of a page for the event stream.
func renderPart(name string, data any) (string, error) {
	var buf bytes.Buffer
	if err := templates().ExecuteTemplate(&buf, name, data); err != nil {
		return "", fmt.Errorf("render part %s: %w", name, err)
	}
	return buf.String(), nil
}

// serveWeb serves scripts and styles. They hold nothing secret, so they need no sign-in.
func serveWeb(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.PathValue("file"))
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
	media, ok := types[path.Ext(name)]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := webFiles.ReadFile("web/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}
