package attacks

import (
	"bufio"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward/approval/socket"
)

// socketSecret is what both ends of the approval socket know.
const socketSecret = "the secret of the approval socket"

// judgeSocket: frames at the approval socket that nobody who knows its secret has sent, or not now; and a place for it that
// others have prepared.
func judgeSocket(t *testing.T, _ *attack, what fields) (outcome, error) {
	if err := what.only("unix-socket", "hmac", "nonce", "ts", "token", "bytes", "line", "mode", "dir", "path", "planted"); err != nil {
		return outcome{}, err
	}
	// Paths of sockets are short; the usual temporary directories of tests are not.
	dir, err := os.MkdirTemp("", "tw")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &socketPlay{t: t, dir: dir, path: filepath.Join(dir, "s")}
	if what.has("mode") || what.has("dir") || what.has("path") || what.has("planted") {
		return s.judgePlace(what)
	}
	return s.judgeFrame(what)
}

type socketPlay struct {
	t         *testing.T
	dir, path string
	watch     stopwatch
	asked     atomic.Int64
}

// serve answers yes to every question that gets through.
func (s *socketPlay) serve() error {
	listener, err := socket.Listen(s.path)
	if err != nil {
		return err
	}
	server := socket.NewServer(socketSecret, socket.Handler{
		Command: func(context.Context, string, *socket.CommandRequest) string { s.asked.Add(1); return "allow-once" },
		Call: func(context.Context, string, *socket.CallRequest) (string, string) {
			s.asked.Add(1)
			return "allow-once", ""
		},
		Exec: func(context.Context, string, *socket.ExecRequest) (*socket.ExecResult, error) {
			s.asked.Add(1)
			return &socket.ExecResult{Success: true}, nil
		},
	}, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.t.Cleanup(func() {
		server.Close()
		must(s.t, <-served)
	})
	return nil
}

// sealed is a frame with its digest.
type sealed struct {
	kind, nonce, key string
	at               time.Time
	digest           func(string) string // nil leaves it
}

func (f sealed) line() string {
	body := `{"kind":"tool","tool":"deploy","title":"deploy"}`
	if f.kind == "exec" {
		body = `{"command":["deploy"]}`
	}
	ts := strconv.FormatInt(f.at.UnixMilli(), 10)
	mac := hmac.New(sha256.New, []byte(f.key))
	mac.Write([]byte(f.nonce + ":" + ts + ":" + body))
	digest := hex.EncodeToString(mac.Sum(nil))
	if f.digest != nil {
		digest = f.digest(digest)
	}
	quoted, _ := json.Marshal(body)
	return fmt.Sprintf(`{"type":%q,"id":"a1","nonce":%q,"ts":%s,"hmac":%q,"requestJson":%s}`, f.kind, f.nonce, ts, digest, quoted)
}

// send sends a line and reports whether it was answered with a yes.
func (s *socketPlay) send(line string) (yes bool, said string, err error) {
	s.watch.time(func() {
		var conn net.Conn
		if conn, err = net.Dial("unix", s.path); err != nil {
			return
		}
		defer conn.Close()
		if err = conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			return
		}
		if _, err = conn.Write([]byte(line + "\n")); err != nil {
			err = nil // it was closed while the line was sent
			return
		}
		said, _ = bufio.NewReader(conn).ReadString('\n')
	})
	var answer struct {
		Decision string
		OK       bool
	}
	_ = json.Unmarshal([]byte(said), &answer) // nothing is no yes
	return strings.HasPrefix(answer.Decision, "allow") || answer.OK, said, err
}

// judgeFrame: a good frame gets its yes, and the attempt does not, whichever kind of frame it is.
func (s *socketPlay) judgeFrame(what fields) (outcome, error) {
	if err := s.serve(); err != nil {
		return outcome{}, err
	}
	for _, kind := range []string{"approval", "exec"} {
		var nonce [16]byte
		rand.Read(nonce[:])
		good := sealed{kind: kind, nonce: hex.EncodeToString(nonce[:]), key: socketSecret, at: time.Now()}
		if yes, said, err := s.send(good.line()); err != nil || !yes {
			return outcome{}, fmt.Errorf("a good frame is refused, which proves nothing: %q %w", said, err)
		}
		bad, err := spoilt(good, what)
		if err != nil {
			return outcome{}, err
		}
		before := s.asked.Load()
		if yes, said, err := s.send(bad); err != nil || yes || s.asked.Load() != before {
			return outcome{answer: allowed, why: fmt.Sprintf("%s: %q %v", kind, said, err)}, nil
		}
	}
	return outcome{answer: denied, took: s.watch.longest}, nil
}

// spoilt is a good frame that was sent before, made into what an attempt describes.
func spoilt(f sealed, what fields) (string, error) {
	fresh := func() {
		var nonce [16]byte
		rand.Read(nonce[:])
		f.nonce = hex.EncodeToString(nonce[:])
	}
	how := strings.ToLower(cmp.Or(what.text("hmac"), what.text("ts"), what.text("nonce"), what.text("token")))
	says := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(how, word) {
				return true
			}
		}
		return false
	}
	switch n, isNumber := what["bytes"].(float64); {
	case isNumber:
		return strings.Repeat("x", int(n)), nil
	case what.has("line"):
		return what.text("line"), nil
	case says("replay", "reuse", "twice", "same"):
		return f.line(), nil
	}
	fresh()
	offset, isNumber := what["ts"].(float64)
	switch {
	case isNumber:
		f.at = f.at.Add(time.Duration(offset) * time.Millisecond)
	case says("future", "ahead", "later"):
		f.at = f.at.Add(time.Minute)
	case says("stale", "old", "expired", "window", "past", "ttl", "skew"):
		f.at = f.at.Add(-time.Minute)
	case says("missing", "none", "absent", "empty"), how == "":
		f.digest = func(string) string { return "" }
	case says("upper"):
		f.digest = strings.ToUpper
	case says("trunc", "short", "prefix"):
		f.digest = func(d string) string { return d[:8] }
	default: // wrong, invalid, of another key
		f.key = "another " + f.key
	}
	return f.line(), nil
}

// judgePlace: the directory, or what lies there already, is not what a socket may be put into.
func (s *socketPlay) judgePlace(what fields) (outcome, error) {
	if err := s.prepare(what); err != nil {
		return outcome{}, err
	}
	before, _ := os.Lstat(s.path)
	var err error
	s.watch.time(func() { err = s.serve() })
	if err == nil {
		info, statErr := os.Lstat(s.path)
		must(s.t, statErr)
		if info.Mode().Type() == os.ModeSocket && info.Mode().Perm() == 0o600 && before == nil {
			return outcome{answer: contained, why: "it is bound with mode 0600", took: s.watch.longest}, nil
		}
		return outcome{answer: allowed, why: "it is bound there"}, nil
	}
	if before != nil {
		if after, err := os.Lstat(s.path); err != nil || !os.SameFile(before, after) {
			return outcome{answer: harmful, why: "what lay there is gone"}, nil
		}
	}
	return outcome{answer: denied, why: err.Error(), took: s.watch.longest}, nil
}

func (s *socketPlay) prepare(what fields) error {
	if mode := cmp.Or(what.text("dir"), what.text("mode")); mode != "" {
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			return unsupported{"a directory with mode " + mode}
		}
		return os.Chmod(s.dir, unixMode(bits))
	}
	switch how := strings.ToLower(what.text("path") + what.text("planted")); {
	case strings.Contains(how, "link"):
		return os.Symlink(filepath.Join(s.dir, "elsewhere"), s.path)
	case strings.Contains(how, "dir"):
		return os.Mkdir(s.path, 0o700)
	case strings.Contains(how, "long"):
		s.path = filepath.Join(s.dir, strings.Repeat("s", 120))
		return nil
	case strings.Contains(how, "socket"), strings.Contains(how, "listen"):
		listener, err := net.Listen("unix", s.path)
		if err == nil {
			s.t.Cleanup(func() { listener.Close() })
		}
		return err
	case strings.Contains(how, "file"):
		return os.WriteFile(s.path, []byte("kept"), 0o600)
	}
	return errors.Join(unsupported{"a socket that is " + what.text("path") + what.text("planted")})
}
