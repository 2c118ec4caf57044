package elsewhere

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// file is a file that is added to.
type file struct{ path string }

func (f file) send(_ context.Context, line []byte) error {
	// O_APPEND is all that a file with the attribute "append only" grants. O_NONBLOCK: a pipe without a reader must not
	// hold up the others. A link could lead the checkpoints to where they are lost.
	out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	info, err := out.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a plain file", f.path)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return err
	}
	return out.Sync()
}

// syslog is the log of this system or of another one, in the form of RFC 5424.
type syslog struct{ setting string }

// localLog is where the log of this system listens.
var localLog = "/dev/log"

// priority is that of a note in the log audit: facility 13, severity 5.
const priority = 13*8 + 5

func (s syslog) send(ctx context.Context, line []byte) error {
	network, address, err := syslogAddress(s.setting)
	if err != nil {
		return err
	}
	conn, err := dialLog(ctx, network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	message := syslogMessage(time.Now(), line)
	if network == "tcp" { // RFC 6587: a stream needs to know where a message ends
		message = append(strconv.AppendInt(nil, int64(len(message)), 10), append([]byte(" "), message...)...)
	}
	_, err = conn.Write(message)
	return err
}

func dialLog(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	if network != "" {
		return dialer.DialContext(ctx, network, address)
	}
	conn, err := dialer.DialContext(ctx, "unixgram", localLog)
	if errors.Is(err, syscall.EPROTOTYPE) {
		conn, err = dialer.DialContext(ctx, "unix", localLog)
	}
	return conn, err
}

func syslogMessage(now time.Time, line []byte) []byte {
	host, err := os.Hostname()
	if host = word(host); err != nil || host == "" {
		host = "-"
	}
	return fmt.Appendf(nil, "<%d>1 %s %s toolward %d checkpoint - %s", priority, now.UTC().Format("2006-01-02T15:04:05.000Z"), host, os.Getpid(), line)
}

// word keeps of a host's name what a header may hold.
func word(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, name[:min(len(name), 255)])
}

// webhook is a server that each checkpoint is posted to.
type webhook struct {
	url, token string
	client     *http.Client
}

func newWebhook(s Settings) webhook {
	return webhook{s.Webhook, s.Token(), &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server
	}}
}

func (w webhook) send(ctx context.Context, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(line))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := w.client.Do(request)
	if err != nil {
		// The library's error repeats the address, and what stands in its query may be a secret.
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}
