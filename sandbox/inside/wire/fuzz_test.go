package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"
	"time"

	"github.com/toolward/toolward/sandbox/task"
)

// messages are one of every kind.
func messages() [][]byte {
	identity := task.Identity{Device: 1, Inode: 2, Size: 3, Modified: 4, Changed: 5}
	command := task.Command{
		Argv: []string{"a", ""}, Shell: "text", Dir: "/dir", Env: []string{"A=b"}, Merged: true, Stdin: true, Terminal: &task.Size{Cols: 80, Rows: 24},
		Segments: []task.Segment{{Argv: []string{"x"}, Env: []string{"C=d"}, Operator: "&&", Redirects: []task.Redirect{{Kind: task.RedirectOut, FD: 1, Path: "p", Text: "t"}}}},
	}
	hello := Hello{Version: Version, Mounts: []Mount{{Target: "/w", Writable: true}}, Workdir: "/w", Env: []string{"A=b"}, Protected: []string{"x"}, OpenFiles: 1, FileSize: 2}
	lasting := hello
	lasting.Detach = Detach{Alone: 3600, Key: [NonceSize]byte{1}, Answer: [NonceSize]byte{2}, Memory: 5, Disk: 6}
	welcome := Welcome{Version: Version}
	started := Started{PID: 5, Warning: "text"}
	list := [][]byte{
		EncodeCommand(&command), hello.Encode(), lasting.Encode(), welcome.Encode(), started.Encode(),
		EncodeExit(task.ExitStatus{Code: 3}), EncodeExit(task.ExitStatus{Code: -1, Signal: 9, OOM: true, Leftover: true}),
		EncodeInfo(&task.FileInfo{Path: "/w/f", Type: task.TypeRegular, Mode: 0o644, Links: 1, Identity: identity}),
		EncodeEntries([]task.Entry{{Name: "a", Type: task.TypeRegular}, {Name: "b"}}, true),
		EncodeStats(task.Stats{CPU: time.Second, Memory: 1, MemoryPeak: 2, Pids: 3, OOMKills: 4}),
		EncodeError(task.Errorf(task.CodeEscape, "text")), EncodeCredit(Stdout, 5),
		EncodePorts([]task.Port{{Number: 80}, {Number: 3000, Local: true, PID: 7, Program: "node"}}, true),
	}
	for _, c := range []Call{
		{Op: OpStat, Path: "/w", Follow: true},
		{Op: OpRead, Path: "/w", Offset: 1, Limit: 2},
		{Op: OpWrite, Path: "/w", Options: task.WriteOptions{Parents: true, Unchanged: &identity, Exact: true, Mode: 0o600}, More: true, Data: []byte("data")},
		{Op: OpMkdir, Path: "/w"},
		{Op: OpRemove, Path: "/w", Remove: task.RemoveOptions{Recursive: true}},
		{Op: OpRemove, Path: "/w", Remove: task.RemoveOptions{Exact: true, Unchanged: &identity}},
		{Op: OpRename, Path: "/w", Target: "/x"},
		{Op: OpList, Path: "/w", Limit: 5, Exact: true},
		{Op: OpStats},
		{Op: OpPorts},
		{Op: OpConnect, Port: 3000},
	} {
		list = append(list, c.Encode())
	}
	return list
}

// FuzzMessages decodes anything as every kind of message. What is accepted must be encoded as the same bytes again: a
// message has one form.
func FuzzMessages(f *testing.F) {
	for _, m := range messages() {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(what string, encoded []byte) {
			if !bytes.Equal(encoded, b) {
				t.Errorf("%s: %x became %x", what, b, encoded)
			}
		}
		if h, err := DecodeHello(b); err == nil && h.Version == Version {
			same("hello", h.Encode())
		}
		if w, err := DecodeWelcome(b); err == nil {
			same("welcome", w.Encode())
		}
		if command, call, err := DecodeRequest(b); err == nil && command != nil {
			same("command", EncodeCommand(command))
		} else if err == nil {
			same("call", call.Encode())
		}
		if s, err := DecodeExit(b); err == nil {
			same("exit", EncodeExit(s))
		}
		if info, rest, err := DecodeInfo(b); err == nil {
			same("info", append(EncodeInfo(&info), rest...))
		}
		if entries, more, err := DecodeEntries(b, 100); err == nil {
			same("entries", EncodeEntries(entries, more))
		}
		if s, err := DecodeStats(b); err == nil {
			same("stats", EncodeStats(s))
		}
		if of, n, err := DecodeCredit(b); err == nil {
			same("credit", EncodeCredit(of, n))
		}
		DecodePorts(b) // its texts are cleaned
		DecodeStarted(b)
		DecodeError(b)
	})
}

// FuzzFrames reads anything as frames, in pieces of any size: what comes out does not depend on the pieces.
func FuzzFrames(f *testing.F) {
	f.Add(AppendFrame(AppendFrame(nil, Request, 1, []byte("a")), Stdout, 2, bytes.Repeat([]byte("b"), 40_000)))
	f.Add(AppendFrame(nil, Exit, 1)[:5])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, wholeErr := frames(bytes.NewReader(b))
		pieces, piecesErr := frames(iotest.OneByteReader(bytes.NewReader(b)))
		if !reflect.DeepEqual(whole, pieces) || (wholeErr == nil) != (piecesErr == nil) {
			t.Errorf("%d frames and %v, in pieces %d and %v", len(whole), wholeErr, len(pieces), piecesErr)
		}
	})
}

type frame struct {
	Header
	payload string
}

func frames(source io.Reader) (list []frame, err error) {
	r := NewReader(source)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		var payload []byte
		if len(list)%2 == 0 {
			payload, err = r.Payload()
		} else {
			payload = make([]byte, h.Size/2) // the rest is skipped
			err = r.ReadFull(payload)
		}
		if err != nil {
			return list, err
		}
		list = append(list, frame{h, string(payload)})
	}
}

func TestMessagesAreDecodedStrictly(t *testing.T) {
	for _, m := range messages() {
		if decodes(m) == 0 {
			t.Errorf("%x is no message", m)
		}
	}
	for name, broken := range map[string]error{
		"exit without a byte":  second(DecodeExit([]byte{0, 0, 0, 0})),
		"exit with one more":   second(DecodeExit([]byte{0, 0, 0, 0, 0, 0})),
		"status 300":           second(DecodeExit(EncodeExit(task.ExitStatus{Code: 300}))),
		"signal and status":    second(DecodeExit(EncodeExit(task.ExitStatus{Code: 1, Signal: 9}))),
		"truth 2":              second(DecodeExit([]byte{0, 0, 0, 2, 0})),
		"entry with a slash":   third(DecodeEntries(EncodeEntries([]task.Entry{{Name: "a/b"}}, false), 10)),
		"entry ..":             third(DecodeEntries(EncodeEntries([]task.Entry{{Name: ".."}}, false), 10)),
		"entries out of order": third(DecodeEntries(EncodeEntries([]task.Entry{{Name: "b"}, {Name: "a"}}, false), 10)),
		"an entry twice":       third(DecodeEntries(EncodeEntries([]task.Entry{{Name: "a"}, {Name: "a"}}, false), 10)),
		"too many entries":     third(DecodeEntries(EncodeEntries([]task.Entry{{Name: "a"}, {Name: "b"}}, false), 1)),
		"a relative path":      third(DecodeInfo(EncodeInfo(&task.FileInfo{Path: "a"}))),
		"a path with dots":     third(DecodeInfo(EncodeInfo(&task.FileInfo{Path: "/a/../b"}))),
		"set-id bits":          third(DecodeInfo(EncodeInfo(&task.FileInfo{Path: "/a", Mode: 0o4755}))),
		"a negative size":      third(DecodeInfo(EncodeInfo(&task.FileInfo{Path: "/a", Identity: task.Identity{Size: -1}}))),
		"credit for nothing":   third(DecodeCredit(EncodeCredit(Exit, 5))),
		"too much credit":      third(DecodeCredit(EncodeCredit(Stdout, Window+1))),
		"ports out of order":   third(DecodePorts(EncodePorts([]task.Port{{Number: 2}, {Number: 1}}, false))),
		"a port twice":         third(DecodePorts(EncodePorts([]task.Port{{Number: 2}, {Number: 2}}, false))),
		"port 0":               third(DecodePorts(EncodePorts([]task.Port{{}}, false))),
		"a connection to 0":    third(DecodeRequest((&Call{Op: OpConnect}).Encode())),
		"no greeting":          second(DecodeHello([]byte("GET / HTTP/1.1\r\n"))),
	} {
		if !errors.Is(broken, ErrProtocol) {
			t.Errorf("%s: %v", name, broken)
		}
	}
	failure, _ := DecodeError(EncodeError(task.Errorf(task.CodeConflict, "a\x1b[2Jb\xff")))
	if failure.Code != task.CodeFailed || failure.Text != "a [2Jb�" {
		t.Errorf("%+v", failure)
	}
}

func second[A any](_ A, err error) error        { return err }
func third[A, B any](_ A, _ B, err error) error { return err }

// decodes counts as how many kinds of messages the bytes can be read.
func decodes(b []byte) (n int) {
	for _, err := range []error{
		second(DecodeHello(b)), second(DecodeWelcome(b)), third(DecodeRequest(b)), second(DecodeExit(b)), third(DecodeInfo(b)),
		third(DecodeEntries(b, 100)), second(DecodeStats(b)), third(DecodeCredit(b)), second(DecodeStarted(b)), second(DecodeError(b)), third(DecodePorts(b)),
	} {
		if err == nil {
			n++
		}
	}
	return n
}
