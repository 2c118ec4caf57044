package live_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/toolward/toolward/internal/live"
)

// consolePerson is somebody who has signed in at the console, without a browser.
type consolePerson struct {
	base   string // URL of their console
	cookie *http.Cookie
	client *http.Client
}

func signInAtConsole(ctx context.Context, address string) (*consolePerson, error) {
	p := &consolePerson{client: &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	form := url.Values{"passphrase": {live.Passphrase}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/sign-in", strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	where, err := response.Location()
	if err != nil || len(response.Cookies()) == 0 {
		return nil, fmt.Errorf("sign in: %s", response.Status)
	}
	p.base, p.cookie = strings.TrimSuffix(where.String(), "/"), response.Cookies()[0]
	return p, nil
}

// api asks the console's JSON API and decodes the answer; whatever is no success is an error.
func (p *consolePerson) api(ctx context.Context, method, path string, body, into any) error {
	response, err := p.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		var why bytes.Buffer
		_, _ = why.ReadFrom(response.Body) // what there is of it must do
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, &why)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func (p *consolePerson) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, p.base+path, &content)
	if err != nil {
		return nil, err
	}
	request.AddCookie(p.cookie)
	request.Header.Set("Content-Type", "application/json")
	return p.client.Do(request)
}

// watch opens the stream of calls that wait. From then on the person counts as somebody who could answer.
func (p *consolePerson) watch(ctx context.Context) (io.ReadCloser, error) {
	response, err := p.open(ctx, http.MethodGet, "/v1/approvals/events", nil)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("watch approvals: %s", response.Status)
	}
	return response.Body, nil
}

// answerAll answers every call in a stream, as soon as the server takes an answer, until ctx or the daemon ends. It
// reports the answers that were taken.
func (p *consolePerson) answerAll(ctx context.Context, stream io.ReadCloser, decide func(id string) (decision string), taken func(id, decision string)) {
	defer stream.Close()
	var answering sync.WaitGroup
	defer answering.Wait()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		for _, shown := range shownIn(data) {
			answering.Go(func() {
				select {
				case <-ctx.Done():
					return
				case <-time.After(unread):
				}
				answer := map[string]string{"decision": decide(shown.ID), "seen": shown.Seen}
				if p.api(ctx, http.MethodPost, "/v1/approvals/"+shown.ID, answer, nil) == nil {
					taken(shown.ID, answer["decision"])
				}
			})
		}
	}
}

// shown is a call that waits, as a stream of events shows it.
type shown struct {
	ID, State, Seen string
	Approvals       []shown // of a "sync" event
}

func shownIn(data string) []shown {
	var s shown
	if json.Unmarshal([]byte(data), &s) != nil {
		return nil
	}
	var waiting []shown
	for _, one := range append(s.Approvals, s) {
		if one.State == "pending" {
			waiting = append(waiting, one)
		}
	}
	return waiting
}
