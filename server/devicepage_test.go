package server_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/protocol"
)

// TestDevicesPage pairs, refuses, vouches, replaces and revokes tokens and removes devices, as toolward devices and the
// gateway protocol do.
func TestDevicesPage(t *testing.T) {
	w := consoletest.New(t, consoletest.Options{Protocol: &protocol.Config{Auth: protocol.Auth{Token: "a token for tests"}}})
	b := signedIn(t, w)
	if _, body := b.get(b.base + "/devices"); !strings.Contains(body, "No device is paired") {
		t.Errorf("no devices:\n%s", body)
	}
	ask := func(id string, scopes ...string) identity.PairRequest {
		t.Helper()
		r, err := w.Pairings.Request(identity.PairRequest{
			DeviceID: id, Key: []byte(id), Name: "<i>phone</i>\u202e", Platform: "iOS", ClientID: "openclaw-ios", Role: identity.RoleOperator,
			Scopes: scopes, IP: "10.0.0.5", Reason: identity.NotPaired,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	seen := func() string {
		t.Helper()
		_, body := b.get(b.base + "/devices")
		found := regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`).FindStringSubmatch(body)
		if found == nil || strings.Contains(body, "<i>") || strings.Contains(body, "\u202e") {
			t.Fatalf("%s", body)
		}
		return found[1]
	}
	post := func(path string, form url.Values, want int) string {
		t.Helper()
		resp, body := b.post(b.base+"/devices/"+path, form)
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d\n%s", path, resp.StatusCode, want, body)
		}
		return body
	}

	// What the device asks for after it was shown is not approved with it.
	r := ask("d1", identity.ScopeRead)
	stamp := seen()
	ask("d1", identity.ScopeAdmin)
	if body := post(r.ID+"/approve", url.Values{"seen": {stamp}}, http.StatusConflict); !strings.Contains(body, "Nothing was approved") || !strings.Contains(body, identity.ScopeAdmin) {
		t.Errorf("%s", body)
	}
	post(r.ID+"/approve", nil, http.StatusConflict)
	if _, paired := w.Pairings.Device("d1"); paired {
		t.Fatal("paired with more than was shown")
	}
	post(r.ID+"/reject", nil, http.StatusSeeOther)
	post(r.ID+"/approve", url.Values{"seen": {stamp}}, http.StatusNotFound)
	post(r.ID+"/reject", nil, http.StatusNotFound)

	r = ask("d1", identity.ScopeRead, identity.ScopeApprovals)
	post(r.ID+"/approve", url.Values{"seen": {seen()}}, http.StatusSeeOther)
	d, _ := w.Pairings.Device("d1")
	if !identity.CoversAll(d.Vouched, []string{identity.ScopeRead, identity.ScopeApprovals}) || d.Person != "owner (console)" {
		t.Errorf("%+v", d)
	}
	if err := w.Pairings.Authority("d1", d.Scopes).MayAnswer(); err != nil {
		t.Errorf("an approved device may not answer: %v", err)
	}
	token, _, err := w.Pairings.Credential(t.Context(), "d1", identity.RoleOperator, []string{identity.ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	works := func() bool {
		return w.Pairings.CheckCredential("d1", identity.RoleOperator, []string{identity.ScopeRead}, token) == nil
	}
	if _, body := b.get(b.base + "/devices"); strings.Contains(body, token) || !strings.Contains(body, "/tokens/operator/revoke") {
		t.Errorf("the page shows a token, or no way to end it:\n%s", body)
	}
	post("d1/tokens/operator/rotate", nil, http.StatusSeeOther)
	if works() {
		t.Error("a replaced token works")
	}
	token, _, _ = w.Pairings.Credential(t.Context(), "d1", identity.RoleOperator, []string{identity.ScopeRead})
	if !works() {
		t.Fatal("the new token does not work")
	}
	post("d1/tokens/operator/revoke", nil, http.StatusSeeOther)
	if works() {
		t.Error("a revoked token works")
	}
	post("d1/tokens/node/rotate", nil, http.StatusUnprocessableEntity)
	post("d1/tokens/node/revoke", nil, http.StatusNotFound)

	// One that was let in without a question is no person until somebody vouches for it.
	if err := w.Pairings.PairSilently(t.Context(), identity.PairRequest{DeviceID: "d2", Key: []byte("d2"), ClientID: "cli", Role: identity.RoleOperator, Scopes: []string{identity.ScopeApprovals}}); err != nil {
		t.Fatal(err)
	}
	if w.Pairings.Authority("d2", []string{identity.ScopeApprovals}).MayAnswer() == nil {
		t.Fatal("a device that nobody vouched for may answer")
	}
	if _, body := b.get(b.base + "/devices"); !strings.Contains(body, "without asking anybody") {
		t.Error("the page does not say that nobody was asked")
	}
	post("d2/approve", url.Values{"seen": {seen()}}, http.StatusSeeOther)
	if err := w.Pairings.Authority("d2", []string{identity.ScopeApprovals}).MayAnswer(); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"d1", "d2"} {
		post(id+"/remove", nil, http.StatusSeeOther)
		if _, paired := w.Pairings.Device(id); paired {
			t.Errorf("%s is still paired", id)
		}
		post(id+"/remove", nil, http.StatusNotFound)
	}
	// Somebody who is not signed in changes nothing.
	r = ask("d3", identity.ScopeRead)
	stamp = seen()
	b.post(b.base+"/sign-out", nil)
	post(r.ID+"/approve", url.Values{"seen": {stamp}}, http.StatusSeeOther) // to the door
	if _, paired := w.Pairings.Device("d3"); paired {
		t.Error("paired by nobody")
	}
}
