package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/client"
	"github.com/toolward/toolward/identity"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// newGateway is a gateway that ends with the test.
func newGateway(t *testing.T) (*gateway, context.Context) {
	t.Helper()
	g := startGateway()
	t.Cleanup(g.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return g, ctx
}

// connect connects a program; it ends with the test.
func connect(t *testing.T, c *client.Client) *client.Client {
	t.Helper()
	t.Cleanup(func() { must(c.Close()) })
	return c
}

// answerNext answers the next question that waits.
func answerNext(ctx context.Context, t *testing.T, desk *client.Client, decision toolward.Decision) {
	t.Helper()
	shown := waiting(ctx, t, desk)
	if err := resolve(ctx, desk, &shown[0], client.Response{Decision: decision}); err != nil {
		t.Fatal(err)
	}
}

// waiting lists what waits, once something does.
func waiting(ctx context.Context, t *testing.T, desk *client.Client) []client.Approval {
	t.Helper()
	for {
		list, err := desk.Pending(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func wants(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: got %v, want %v", what, err, target)
	}
}

func TestRefusals(t *testing.T) {
	g, ctx := newGateway(t)
	desk, agent := connect(t, g.desk("desk")), connect(t, g.dial("agent"))
	dialed := func(change func(*client.Options)) error {
		o := g.options("other")
		change(&o)
		c, err := client.Dial(ctx, o)
		if err == nil {
			must(c.Close())
		}
		return err
	}
	wants(t, "a wrong token", dialed(func(o *client.Options) { o.Token = "wrong-wrong" }), client.ErrCredential)
	wants(t, "no token", dialed(func(o *client.Options) { o.Token = "" }), client.ErrCredential)
	wants(t, "a wrong token without a device", dialed(func(o *client.Options) { o.Token, o.Identity = "wrong-wrong", nil }), client.ErrCredential)
	wants(t, "a strange device token", dialed(func(o *client.Options) { o.Token, o.DeviceToken = "", "wrong-wrong" }), client.ErrCredential)

	_, err := agent.Pending(ctx)
	wants(t, "a device that nobody vouched for", err, client.ErrPerson)
	reader := connect(t, g.dial("reader", func(o *client.Options) { o.Scopes = []string{client.ScopeRead} }))
	_, err = reader.AskCommand(ctx, client.Command{Text: "make"})
	wants(t, "without the scope", err, client.ErrScope)
	_, err = desk.Approval(ctx, "no-such-approval")
	wants(t, "an unknown id", err, client.ErrUnknown)

	if _, err := agent.AskCommand(ctx, client.Command{Text: "make"}); err != nil {
		t.Fatal(err)
	}
	shown := waiting(ctx, t, desk)[0]
	yes := client.Response{Decision: toolward.AllowOnce}
	if time.Since(shown.Created) < 300*time.Millisecond { // on a machine that is not too busy
		wants(t, "at once", desk.Resolve(ctx, &shown, yes), client.ErrTooSoon)
	}
	time.Sleep(time.Until(shown.Created.Add(time.Second)))
	for name, change := range map[string]func(*client.Approval, *client.Response){
		"another digest": func(a *client.Approval, _ *client.Response) { a.Digest = strings.Repeat("0", 64) },
		"no digest":      func(a *client.Approval, _ *client.Response) { a.Digest = "" },
		"always":         func(_ *client.Approval, r *client.Response) { r.Decision = toolward.AllowAlways },
		"always, said to be offered": func(a *client.Approval, r *client.Response) {
			a.Allowed, r.Decision = []toolward.Decision{toolward.AllowAlways}, toolward.AllowAlways
		},
		"no decision": func(_ *client.Approval, r *client.Response) { r.Decision = toolward.NoDecision },
	} {
		a, r := shown, yes
		change(&a, &r)
		err := desk.Resolve(ctx, &a, r)
		if err == nil {
			t.Fatalf("%s: it counts", name)
		}
		if name == "another digest" {
			wants(t, name, err, client.ErrChanged)
		}
	}
	must(desk.Resolve(ctx, &shown, yes))
	wants(t, "a second answer", desk.Resolve(ctx, &shown, yes), client.ErrUnknown)

	other := connect(t, g.desk("other"))
	own, err := desk.AskCommand(ctx, client.Command{Text: "make"})
	if err != nil {
		t.Fatal(err)
	}
	shown = waiting(ctx, t, other)[0]
	time.Sleep(time.Until(shown.Created.Add(time.Second)))
	wants(t, "one's own", desk.Resolve(ctx, &shown, yes), client.ErrOwn)
	must(other.Resolve(ctx, &shown, client.Response{Decision: toolward.DenyCall}))
	if a, err := own.Wait(ctx); err != nil || a.Decision != toolward.DenyCall {
		t.Errorf("%+v, %v", a, err)
	}
}

// A device that must be paired waits for a person.
func TestDialWaitsForPairing(t *testing.T) {
	g, ctx := newGateway(t)
	o := g.options("phone")
	key, err := client.LoadIdentity(filepath.Join(g.home, "phone.pem"))
	if err != nil || key.ID() != o.Identity.ID() {
		t.Fatalf("the key is another one when it is read again: %v", err)
	}
	// It was another kind of machine the last time.
	c := got(client.Dial(ctx, o))
	public := got(g.keyOf(key.ID()))
	must(c.Close())
	g.approve(key.ID())
	must(g.pairings.Remove(ctx, g.person, key.ID()))
	must(g.pairings.PairSilently(ctx, identity.PairRequest{
		DeviceID: key.ID(), Key: public, Platform: "beos", ClientID: "gateway-client", Role: identity.RoleOperator, Scopes: o.Scopes,
	}))
	_, err = client.Dial(ctx, o)
	wants(t, "without waiting", err, client.ErrPairing)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Pairing == "" {
		t.Errorf("no request is named: %v", err)
	}
	told := make(chan string, 8)
	o.Pairing = func(request string) { told <- request; g.approve(request) }
	c, err = client.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, c)
	if request := <-told; request != refused.Pairing || len(told) > 0 {
		t.Errorf("told %q, want %q and nothing else", request, refused.Pairing)
	}
	if _, err := c.Pending(ctx); err != nil {
		t.Errorf("a person approved it: %v", err)
	}
}

// keyOf is the public key of a paired device.
func (g *gateway) keyOf(id string) ([]byte, error) {
	d, known := g.pairings.Device(id)
	if !known {
		return nil, errors.New("the device is not paired")
	}
	return d.Key, nil
}

// A device needs no other credential once it has its own.
func TestDeviceToken(t *testing.T) {
	g, ctx := newGateway(t)
	c := g.dial("agent")
	token := c.DeviceToken()
	must(c.Close())
	if token == "" {
		t.Fatal("there is none")
	}
	again := connect(t, g.dial("agent", func(o *client.Options) { o.Token, o.DeviceToken = "", token }))
	g.restart()
	if _, err := again.Catalog(ctx, ""); err != nil {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	g, ctx := newGateway(t)
	there := func(o *client.Options) { o.Address = g.Socket }
	desk, agent := connect(t, g.desk("desk", there)), connect(t, g.dial("agent", there))
	asked, err := agent.AskCall(ctx, client.Call{Tool: "mail", Arguments: json.RawMessage(`{"to": "all"}`), Class: toolward.NeedsApproval})
	if err != nil {
		t.Fatal(err)
	}
	answerNext(ctx, t, desk, toolward.DenyCall)
	if a, err := asked.Wait(ctx); err != nil || a.Decision != toolward.DenyCall {
		t.Errorf("%+v, %v", a, err)
	}
	// A directory that others may enter can have been given a socket of theirs.
	must(os.Chmod(g.home, 0o755))
	if c, err := client.Dial(ctx, client.Options{Address: g.Socket, Token: secret}); err == nil {
		must(c.Close())
		t.Error("it gave its token to whoever stands there")
	}
	must(os.Chmod(g.home, 0o700))
}

// A refusal that repeating does not change ends the client, and what it does says why.
func TestEndsForGood(t *testing.T) {
	g, ctx := newGateway(t)
	c := connect(t, g.dial("agent"))
	news := c.Watch(ctx)
	must(g.pairings.PairSilently(ctx, identity.PairRequest{DeviceID: c.Device(), Key: got(g.keyOf(c.Device())), Role: identity.RoleOperator}))
	g.secret = "another-secret"
	g.restart()
	for range news { // until it is closed
	}
	_, err := c.Catalog(ctx, "")
	wants(t, "after the secret was changed", err, client.ErrCredential)
	if _, open := <-c.Watch(ctx); open {
		t.Error("there is news")
	}
}

// ofClients counts the goroutines that clients have started.
func ofClients() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "created by github.com/toolward/toolward/client.")
}

func TestClosed(t *testing.T) {
	g, ctx := newGateway(t)
	connect(t, g.desk("desk"))
	before := ofClients()
	c := g.dial("agent")
	asked, err := c.AskCommand(ctx, client.Command{Text: "make"})
	if err != nil {
		t.Fatal(err)
	}
	news, waited := c.Watch(ctx), make(chan error, 1)
	go func() { _, err := asked.Wait(ctx); waited <- err }()
	must(c.Close())
	must(c.Close())
	wants(t, "who waited", <-waited, client.ErrClosed)
	for range news { // until it is closed
	}
	if after := ofClients(); after > before {
		t.Errorf("%d goroutines of clients, %d before", after, before)
	}
	for name, c := range map[string]*client.Client{"closed": c, "zero": {}, "nil": nil} {
		_, err := c.Pending(ctx)
		wants(t, name, err, client.ErrClosed)
		_, err = c.AskCommand(ctx, client.Command{Text: "make"})
		wants(t, name, err, client.ErrClosed)
		wants(t, name, c.Request(ctx, "health", nil, nil), client.ErrClosed)
		if _, open := <-c.Watch(ctx); open {
			t.Errorf("%s: there is news", name)
		}
		must(c.Close())
	}
	_, err = new(client.Asked).Wait(ctx)
	wants(t, "a zero question", err, client.ErrClosed)
	if (client.Answer{}).Decision.Allows() {
		t.Error("the zero answer allows")
	}
}

func TestOptions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nothing may be dialed
	for name, c := range map[string]struct {
		o    client.Options
		want string
	}{
		"nothing":                {client.Options{}, "no address"},
		"over a network":         {client.Options{Address: "ws://gate.example.org:7411"}, "use wss"},
		"a name like loopback":   {client.Options{Address: "ws://localhost.example.org"}, "use wss"},
		"a secret in it":         {client.Options{Address: "ws://127.0.0.1:1/?token=x"}, "credentials"},
		"a user in it":           {client.Options{Address: "wss://me@gate.example.org"}, "credentials"},
		"http":                   {client.Options{Address: "http://127.0.0.1:7411"}, "expected ws://"},
		"a relative socket":      {client.Options{Address: "unix:toolward.sock"}, "expected ws://"},
		"two secrets":            {client.Options{Address: "ws://127.0.0.1:1", Token: "a", Password: "b"}, "one of them"},
		"a token of no device":   {client.Options{Address: "ws://127.0.0.1:1", DeviceToken: "a"}, "without Identity"},
		"pairing without device": {client.Options{Address: "ws://127.0.0.1:1", Pairing: func(string) {}}, "without Identity"},
		"an empty identity":      {client.Options{Address: "ws://127.0.0.1:1", Identity: &client.Identity{}}, "empty"},
		"fine":                   {client.Options{Address: "ws://[::1]:1"}, "context canceled"},
	} {
		if _, err := client.Dial(ctx, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestIdentityFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	made := got(client.LoadIdentity(path))
	if read := got(client.LoadIdentity(path)); read.ID() != made.ID() {
		t.Error("it is another one the second time")
	}
	if info := got(os.Stat(path)); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(os.Chmod(path, 0o640))
	if _, err := client.LoadIdentity(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("others can read it: %v", err)
	}
	must(os.Chmod(path, 0o600))
	must(os.WriteFile(path, []byte("no key"), 0o600))
	if _, err := client.LoadIdentity(path); err == nil {
		t.Error("no key")
	}
}
