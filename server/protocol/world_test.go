package protocol

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/command/allowlist"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/gateparts"
	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/policy"
)

const passphrase = "correct horse battery staple"

// world is a protocol server of real parts, reached through connections in memory.
type world struct {
	*Server
	t        testing.TB
	keeper   *identity.Keeper
	home     string
	listener *pipeListener
	http     *http.Server
	ran      atomic.Int64 // calls of tools that ran
	gateway  *toolward.Gateway
}

// newWorld starts a server; it ends with the test.
func newWorld(t testing.TB, config Config, change ...func(*Options)) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, home: t.TempDir(), listener: newPipeListener()}
	var news atomic.Pointer[Server]
	parts, err := gateparts.Open(ctx, gateparts.Options{Home: w.home, Approvals: func(o *approval.Options) {
		o.Observe = func(e approval.Event) {
			if s := news.Load(); s != nil {
				s.ApprovalNews(e)
			}
		}
	}})
	must(t, err)
	t.Cleanup(func() { parts.Close() })
	w.keeper = parts.People
	rules, err := policyOf(w.tools())
	must(t, err)
	w.gateway, err = parts.Gate(policy.NewLive(rules), nil)
	must(t, err)
	commands := allowlist.Open(w.home, allowlist.Options{Ledger: &gatetest.Ledger{}})
	t.Cleanup(commands.Close)
	counter, err := desk.New(desk.Options{Audit: parts.Audit, Allowlist: commands, Devices: parts.Pairings, Approvals: parts.Approvals, Records: parts.Audit})
	must(t, err)
	o := Options{
		Config: config, Pairings: parts.Pairings, Approvals: parts.Approvals, Audit: parts.Audit, Gate: w.gateway, Desk: counter,
		Policy: func() Policy { return rules },
		Agents: func() AgentList { return AgentList{Default: "main", All: []Agent{{ID: "main", Workspace: w.home}}} },
		CallAs: func(context.Context, string) (Agent, error) { return Agent{}, ErrNoAgent },
		Home:   w.home, Version: "test",
	}
	for _, f := range change {
		f(&o)
	}
	w.Server, err = New(o)
	must(t, err)
	news.Store(w.Server)
	w.http = &http.Server{Handler: w.Server}
	served := make(chan struct{})
	go func() { _ = w.http.Serve(w.listener); close(served) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		w.http.Close()
		<-served
	})
	return w
}

func policyOf(tools []*toolward.Tool) (*policy.Snapshot, error) {
	s, _, err := policy.Compile(policy.Config{}, tools)
	return s, err
}

// tools are stand-ins that only note that they ran.
func (w *world) tools() []*toolward.Tool {
	var all []*toolward.Tool
	for _, name := range []string{"sessions_list", "session_status", "write", "exec", "read"} {
		all = append(all, &toolward.Tool{
			Name: name, Description: name, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"command":{"type":"string"}}}`),
			Run: func(context.Context, *toolward.Request) (toolward.Result, error) {
				w.ran.Add(1)
				return toolward.TextResult("ran"), nil
			},
		})
	}
	return all
}

var setUpOnce sync.Mutex // one passphrase at a time: each takes 19 MiB

// person is somebody who signed in.
func (w *world) person() identity.Authority {
	w.t.Helper()
	setUpOnce.Lock()
	defer setUpOnce.Unlock()
	if w.keeper.NeedsSetup() {
		must(w.t, w.keeper.SetUp(w.t.Context(), "test", w.keeper.SetupCode(), passphrase))
	}
	by, err := w.keeper.SignInForeground(w.t.Context(), passphrase)
	must(w.t, err)
	return by
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// identity is a device's key.
type keyPair struct {
	private  ed25519.PrivateKey
	platform string
}

func newIdentity() *keyPair {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	return &keyPair{private: private, platform: "linux"}
}

func (i *keyPair) id() string { return identity.DeviceID(i.private.Public().(ed25519.PublicKey)) }

// hello is a connect frame's parameters.
func hello(change ...func(map[string]any)) map[string]any {
	params := map[string]any{
		"minProtocol": 3, "maxProtocol": 4,
		"client": map[string]any{"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
	}
	for _, f := range change {
		f(params)
	}
	return params
}

// sign adds the proof of a device.
func (i *keyPair) sign(params map[string]any, nonce string, now time.Time) {
	client := params["client"].(map[string]any)
	auth, _ := params["auth"].(map[string]any)
	scopes, _ := params["scopes"].([]string)
	role, _ := params["role"].(string)
	if role == "" {
		role = "operator"
	}
	token, _ := auth["token"].(string)
	if token == "" {
		token, _ = auth["deviceToken"].(string)
	}
	public := i.private.Public().(ed25519.PublicKey)
	p := identity.Proof{
		DeviceID: i.id(), SignedAtMs: now.UnixMilli(), Nonce: nonce, ClientID: client["id"].(string), ClientMode: client["mode"].(string),
		Role: identity.Role(role), Scopes: scopes, Token: token, Platform: client["platform"].(string),
	}
	params["device"] = map[string]any{
		"id": p.DeviceID, "publicKey": base64.RawURLEncoding.EncodeToString(public), "signedAt": p.SignedAtMs, "nonce": nonce,
		"signature": base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.private, []byte(p.Payload("v3")))),
	}
}

const secret = "s3cret-s3cret"

var byToken = Config{Auth: Auth{Mode: ModeToken, Token: secret}}

// connect connects with the shared token and these scopes; who is nil without a device.
func (w *world) connect(who *keyPair, scopes ...string) *client {
	w.t.Helper()
	c, f := w.tryConnect(visit{}, who, scopes...)
	if !f.OK {
		w.t.Fatalf("connect: %+v", f.Error)
	}
	return c
}

func (w *world) tryConnect(from visit, who *keyPair, scopes ...string) (*client, frame) {
	w.t.Helper()
	c := w.dial(from)
	params := hello(func(p map[string]any) {
		p["auth"] = map[string]any{"token": secret}
		p["scopes"] = scopes
		if scopes == nil {
			p["scopes"] = []string{}
		}
	})
	if who != nil {
		params["client"].(map[string]any)["platform"] = who.platform
		who.sign(params, c.nonce, time.Now())
	}
	c.begin("connect", "connect", params)
	return c, c.response("connect")
}

// console connects a device that a person vouched for.
func (w *world) console(who *keyPair, scopes ...string) *client {
	w.t.Helper()
	c := w.connect(who, scopes...)
	if _, err := w.pairings.Approve(w.t.Context(), w.person(), who.id(), nil); err != nil {
		w.t.Fatal(err)
	}
	c.ws.CloseNow()
	return w.connect(who, scopes...)
}

// runVectors runs every case of a kind: answer gives what the program says, and what is wanted must be part of it.
func runVectors(t *testing.T, kind string, answer func(t *testing.T, input json.RawMessage) any) {
	t.Helper()
	const file = "runtime.json"
	gatetest.Play(t, file, kind, gatetest.Vectors(t, file, kind)[kind], func(t *testing.T, c gatetest.Case) {
		var want, got any
		must(t, json.Unmarshal(c.Want, &want))
		raw, err := json.Marshal(answer(t, c.Input))
		must(t, err)
		must(t, json.Unmarshal(raw, &got))
		if where := lacks(want, got, ""); where != "" {
			t.Errorf("%s\ninput %s\nwant %s\ngot %s", where, c.Input, c.Want, raw)
		}
	})
}

// lacks says where got is not what is wanted; what is not asked for may be anything.
func lacks(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for name, v := range want {
			if where := lacks(v, have[name], at+"."+name); where != "" {
				return where
			}
		}
		return ""
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return at + " has another length"
		}
		for i := range want {
			if where := lacks(want[i], have[i], at+"[]"); where != "" {
				return where
			}
		}
		return ""
	}
	if want != got {
		return at + " differs"
	}
	return ""
}
