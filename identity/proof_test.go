package identity

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"testing"
	"time"
)

// signedProof is a proof as an honest device makes it, changed before it is signed.
func signedProof(t *testing.T, now time.Time, version string, change func(*Proof)) Proof {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = 7
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	p := Proof{
		DeviceID: DeviceID(public), PublicKey: base64.RawURLEncoding.EncodeToString(public), SignedAtMs: now.UnixMilli(), Nonce: "n1",
		ClientID: "cli", ClientMode: "cli", Role: RoleOperator, Scopes: []string{ScopeRead}, Token: "t", Platform: " Linux", Family: "",
	}
	if change != nil {
		change(&p)
	}
	p.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(p.Payload(version))))
	return p
}

func TestProof(t *testing.T) {
	now := time.UnixMilli(1795235236132)
	for _, version := range []string{"v2", "v3"} {
		p := signedProof(t, now, version, nil)
		if _, err := p.Verify("n1", now.Add(120*time.Second)); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	inPEM := signedProof(t, now, "v3", func(p *Proof) {
		raw, err := base64.RawURLEncoding.DecodeString(p.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKIXPublicKey(ed25519.PublicKey(raw))
		if err != nil {
			t.Fatal(err)
		}
		p.PublicKey = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	})
	if _, err := inPEM.Verify("n1", now); err != nil {
		t.Errorf("PEM: %v", err)
	}

	after := func(change func(*Proof)) Proof {
		p := signedProof(t, now, "v3", nil)
		change(&p)
		return p
	}
	for _, c := range []struct {
		name, challenge string
		p               Proof
		want            *ProofError
	}{
		{"another connection's challenge", "n2", after(func(*Proof) {}), errProofNonce},
		{"no challenge was sent", "", after(func(*Proof) {}), errProofNonce},
		{"no nonce", "n1", after(func(p *Proof) { p.Nonce = " " }), errProofNoNonce},
		{"id of another key", "n1", after(func(p *Proof) { p.DeviceID = p.DeviceID[1:] + "0" }), errProofID},
		{"no key", "n1", after(func(p *Proof) { p.PublicKey = "" }), errProofKey},
		{"too old", "n1", after(func(p *Proof) { p.SignedAtMs = now.Add(-120*time.Second - time.Millisecond).UnixMilli() }), errProofExpired},
		{"from the future", "n1", after(func(p *Proof) { p.SignedAtMs = now.Add(121 * time.Second).UnixMilli() }), errProofExpired},
		{"more scopes than signed", "n1", after(func(p *Proof) { p.Scopes = append(p.Scopes, ScopeAdmin) }), errProofSigned},
		{"another role", "n1", after(func(p *Proof) { p.Role = RoleNode }), errProofSigned},
		{"another token", "n1", after(func(p *Proof) { p.Token = "other" }), errProofSigned},
		{"another platform", "n1", after(func(p *Proof) { p.Platform = "ios" }), errProofSigned},
		{"no signature", "n1", after(func(p *Proof) { p.Signature = "" }), errProofSigned},
	} {
		_, err := c.p.Verify(c.challenge, now)
		var wrong *ProofError
		if !errors.As(err, &wrong) || wrong != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		held []string
		want string
		ok   bool
	}{
		{nil, ScopeRead, false},
		{nil, "", false},
		{[]string{ScopeAdmin}, ScopePairing, true},
		{[]string{ScopeAdmin}, "operator.new", true},
		{[]string{ScopeAdmin}, "node.run", false},
		{[]string{ScopeWrite}, ScopeRead, true},
		{[]string{ScopeRead}, ScopeWrite, false},
		{[]string{ScopeApprovals}, ScopeRead, false},
		{[]string{"operator.new"}, "operator.new", true},
	} {
		if ok := Covers(c.held, c.want); ok != c.ok {
			t.Errorf("%v covers %q: %v", c.held, c.want, ok)
		}
	}
}
