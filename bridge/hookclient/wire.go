package hookclient

import (
	"errors"
	"strconv"
	"syscall"

	"github.com/toolward/toolward/hostdaemon"
)

// frameMagic begins every answer; see [AppendAnswer].
const frameMagic = "toolward-hook 1 "

// Environment lists what the daemon is told of the hook's environment: header name and variable.
var Environment = [...]struct{ Header, Variable string }{
	{"Toolward-Project-Dir", "CLAUDE_PROJECT_DIR"},
	{"Toolward-Attended", "CLAUDE_CODE_SESSION_ATTENDED"},
	{"Toolward-Entrypoint", "CLAUDE_CODE_ENTRYPOINT"},
}

// Answer is what the client is to see of the hook: both streams and the exit status, 0 or 2.
type Answer struct {
	Exit   int
	Stdout []byte
	Stderr []byte
}

// AppendAnswer appends the daemon's form of an answer: a line with status and lengths, then both streams. Lengths
// are in front so that an answer cut off by a dying daemon is never taken for a whole one.
func AppendAnswer(b []byte, a Answer) []byte {
	b = append(b, frameMagic...)
	b = strconv.AppendInt(b, int64(a.Exit), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(a.Stdout)), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(a.Stderr)), 10)
	b = append(b, '\n')
	b = append(b, a.Stdout...)
	return append(b, a.Stderr...)
}

// ParseAnswer reads AppendAnswer's form; it must fill b exactly.
func ParseAnswer(b []byte) (Answer, bool) {
	line, _, ok := cut(string(b[:min(len(b), 128)]), '\n')
	if !ok || len(line) < len(frameMagic) || line[:len(frameMagic)] != frameMagic {
		return Answer{}, false
	}
	exit, lengths, ok1 := cut(line[len(frameMagic):], ' ')
	outField, errField, ok2 := cut(lengths, ' ')
	out, ok3 := parseNumber(outField)
	err, ok4 := parseNumber(errField)
	body := b[len(line)+1:]
	if !ok1 || !ok2 || !ok3 || !ok4 || exit != "0" && exit != "2" || out+err != int64(len(body)) {
		return Answer{}, false
	}
	return Answer{Exit: int(exit[0] - '0'), Stdout: body[:out], Stderr: body[out:]}, true
}

// exchange sends the event to the daemon and waits for the answer.
func (h *Hook) exchange(home string, input []byte) (a Answer, problem string) {
	fd, err := Dial(home)
	if err != nil {
		return Answer{}, err.Error()
	}
	defer syscall.Close(fd)
	if !WriteAll(fd, h.head(len(input))) || !WriteAll(fd, input) {
		return Answer{}, "the Toolward daemon stopped listening"
	}
	reply, problem := readAll(fd, MaxAnswer, len(input)/4)
	if problem != "" {
		return Answer{}, "the Toolward daemon's answer cannot be read (" + problem + ")"
	}
	body, problem := httpBody(reply)
	if problem != "" {
		return Answer{}, problem
	}
	a, ok := ParseAnswer(body)
	if !ok {
		return Answer{}, "the Toolward daemon stopped before it answered"
	}
	return a, ""
}

// Dial connects to the daemon of this machine or, where it has none, of the home, and makes sure that it is the daemon. The
// error says what to do.
func Dial(home string) (int, error) {
	daemon, err := hostdaemon.Of(home)
	if err != nil {
		return -1, err
	}
	fd, err := connect(daemon.Socket)
	if err != nil {
		return -1, errors.New("the Toolward daemon is not running (" + daemon.Socket + ": " + err.Error() + "): " + daemon.Start())
	}
	if err := daemon.CheckDescriptor(fd); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connect opens a connection. Socket addresses hold about 100 bytes, so a longer path is reached from within its directory.
func connect(path string) (int, error) {
	if len(path) > 100 {
		i := len(path) - 1
		for path[i] != '/' {
			i--
		}
		if err := syscall.Chdir(path[:i]); err != nil {
			return -1, err
		}
		path = path[i+1:]
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	for {
		switch err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err {
		case nil:
			return fd, nil
		case syscall.EINTR:
			continue
		}
		_ = syscall.Close(fd)
		return -1, err
	}
}

// head is the request line and headers. Values are escaped: a directory name with a line break must not become a
// header of its own.
func (h *Hook) head(length int) []byte {
	b := make([]byte, 0, 512)
	b = append(b, "POST /v1/hook/"...)
	b = append(b, h.Client...)
	if h.Event != "" {
		b = append(b, '/')
		b = append(b, h.Event...)
	}
	b = append(b, " HTTP/1.1\r\nHost: toolward\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	b = append(b, "\r\nToolward-Deadline-Ms: "...)
	b = strconv.AppendInt(b, h.Deadline.Milliseconds(), 10)
	for _, e := range Environment {
		if value := h.Env(e.Variable); value != "" && len(value) <= 8192 {
			b = append(b, "\r\n"...)
			b = append(b, e.Header...)
			b = append(b, ": "...)
			b = AppendEscaped(b, value)
		}
	}
	return append(b, "\r\n\r\n"...)
}

// AppendEscaped writes everything but letters, digits and a few marks as %XX.
func AppendEscaped(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '/' || c == '.' || c == '-' || c == '_' {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}

// httpBody takes the body out of a response of the daemon's own HTTP server, which always sends it whole.
func httpBody(reply []byte) (body []byte, problem string) {
	if len(reply) == 0 {
		return nil, "the Toolward daemon stopped before it answered"
	}
	const status = "HTTP/1.1 "
	if len(reply) < len(status)+3 || string(reply[:len(status)]) != status {
		return nil, "something that is not the Toolward daemon answered"
	}
	if code := string(reply[len(status) : len(status)+3]); code != "200" {
		return nil, "the Toolward daemon refused the hook itself (status " + code + "); is it of the same version?"
	}
	for i := 0; i+4 <= len(reply); i++ {
		if reply[i] == '\r' && string(reply[i:i+4]) == "\r\n\r\n" {
			return reply[i+4:], ""
		}
	}
	return nil, "the Toolward daemon stopped before it answered"
}

func readInput(fd int) ([]byte, string) {
	input, problem := readAll(fd, MaxInput, 8<<10)
	if problem != "" {
		return nil, "the event on standard input cannot be read (" + problem + ")"
	}
	if len(input) == 0 {
		return nil, "there is no event on standard input"
	}
	return input, ""
}

// readAll reads until the end, but at most limit bytes.
func readAll(fd, limit, expect int) (data []byte, problem string) {
	buf := make([]byte, 0, max(expect, 4<<10))
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case again(fd, err):
			continue
		case err != nil:
			return nil, err.Error()
		case n <= 0:
			return buf, ""
		}
		if buf = buf[:len(buf)+n]; len(buf) > limit {
			return nil, "it is too large"
		}
	}
}

// WriteAll writes all of data, and reports whether it could.
func WriteAll(fd int, data []byte) bool {
	for len(data) > 0 {
		n, err := syscall.Write(fd, data)
		if again(fd, err) {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		data = data[n:]
	}
	return true
}

// again reports whether a system call is to be repeated. Some clients hand over descriptors that do not block;
// this end of them is ours alone, so it can be made to.
func again(fd int, err error) bool {
	switch err {
	case syscall.EINTR:
		return true
	case syscall.EAGAIN:
		return syscall.SetNonblock(fd, false) == nil
	}
	return false
}

func cut(s string, sep byte) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == sep {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
