package plugin

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// The headers of a request to a plug-in of kind http. The signature is "sha256=" and the lower hex HMAC-SHA-256 over
// the timestamp, a full stop and the body. The timestamp, in Unix seconds, lets the plug-in refuse a replay.
const (
	HeaderTimestamp = "X-Toolward-Timestamp"
	HeaderSignature = "X-Toolward-Signature"
)

// minSecret is the length in bytes of the shortest key that signs.
const minSecret = 16

// webPlugin posts events to a web server.
type webPlugin struct {
	url    string
	key    []byte
	broken error // why it cannot be asked
	client *http.Client
	last   atomic.Uint64
}

func newWebPlugin(e Entry, environ func(string) (string, bool)) *webPlugin {
	w := &webPlugin{url: e.URL}
	key, _ := environ(e.SecretEnv)
	if w.key = []byte(key); len(key) < minSecret {
		w.broken = fmt.Errorf("the variable %s, which holds the key, has less than %d bytes or is not set", e.SecretEnv, minSecret)
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	if u, err := url.Parse(e.URL); err == nil && loopbackName(u.Hostname()) {
		dialer.Control = onlyLoopback
	}
	w.client = &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, TLSHandshakeTimeout: 5 * time.Second,
		}, // no proxy: it would read the arguments of every call
		// A redirect would carry them to a host that nobody allowed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w
}

// onlyLoopback refuses to connect to another machine: "localhost" is what a resolver says it is.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not this machine", address)
	}
	return nil
}

func (w *webPlugin) ask(ctx context.Context, event []byte, hook Name, about []byte) (reply, error) {
	if w.broken != nil {
		return reply{}, w.broken
	}
	id := strconv.FormatUint(w.last.Add(1), 10)
	body, err := json.Marshal(wireRequest{id, hook, event, about})
	if err != nil {
		return reply{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(HeaderTimestamp, timestamp)
	request.Header.Set(HeaderSignature, "sha256="+signature(w.key, timestamp, body))
	response, err := w.client.Do(request)
	if err != nil {
		// The library's error repeats the address, and what stands in its query may be a secret.
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return reply{}, fmt.Errorf("ask the server of the plug-in: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return reply{}, fmt.Errorf("it answered %s", response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return reply{}, err
	}
	answer, err := readReply(raw)
	switch {
	case err != nil:
		return reply{}, fmt.Errorf("its answer is not understood: %w", err)
	case answer.ID != id:
		return reply{}, errors.New("it answered another request")
	}
	return answer, nil
}

func signature(key []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(timestamp))
	mac.Write([]byte("."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
