package live_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client"
	"github.com/toolward/toolward/internal/live"
)

// TestGoClient is package client against the real daemon, at both of its doors: a device is approved at the port, then
// programs ask and answer at the local socket, and the daemon is restarted in between.
func TestGoClient(t *testing.T) {
	m := live.NewMachine(t, "")
	m.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	person, err := signInAtConsole(ctx, m.URL)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Secret string }
	if err := person.api(ctx, "POST", "/v1/tokens", map[string]any{"gateway": true, "name": "programs"}, &made); err != nil {
		t.Fatal(err)
	}
	dial := func(name, address string) *client.Client {
		t.Helper()
		key, err := client.LoadIdentity(filepath.Join(m.Home, name+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.Dial(ctx, client.Options{
			Address: address, Token: made.Secret, Identity: key, Name: name, Scopes: []string{client.ScopeApprovals, client.ScopeRead},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	socket, port := "unix://"+m.Socket(), "ws"+strings.TrimPrefix(m.URL, "http")
	desk := dial("desk", port)
	if _, err := desk.Pending(ctx); !errors.Is(err, client.ErrPerson) {
		t.Errorf("before anybody vouched: %v", err)
	}
	if err := person.api(ctx, "POST", "/v1/devices/"+desk.Device()+"/approve", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	desk.Close()
	desk = dial("desk", socket)
	agent := dial("agent", socket)
	if list, err := agent.Catalog(ctx, ""); err != nil || len(list.Groups) == 0 {
		t.Errorf("catalogue: %+v, %v", list, err)
	}
	asked, err := agent.AskCommand(ctx, client.Command{Text: "make deploy", WorkDir: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	m.Restart() // at another port: whoever is at the socket finds it again
	shown := pendingAt(ctx, t, desk)
	if shown.ID != asked.ID || shown.Request.Command != "make deploy" {
		t.Errorf("shown: %+v", shown)
	}
	time.Sleep(time.Until(shown.Created.Add(time.Second))) // an answer counts from half a second on
	if err := desk.Resolve(ctx, &shown, client.Response{Decision: toolward.AllowOnce}); err != nil {
		t.Fatal(err)
	}
	if a, err := asked.Wait(ctx); err != nil || a.Decision != toolward.AllowOnce {
		t.Errorf("%+v, %v", a, err)
	}
}

// pendingAt is the approval that waits, once one does.
func pendingAt(ctx context.Context, t *testing.T, c *client.Client) client.Approval {
	t.Helper()
	for {
		list, err := c.Pending(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
}
