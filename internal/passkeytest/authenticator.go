// Package passkeytest is an authenticator for tests: it answers the questions of WebAuthn as a browser with a security
// key would, and lets tests answer wrongly.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
)

// Authenticator holds one passkey at a time. Its fields are what a test changes to answer wrongly.
type Authenticator struct {
	Origin     string // that the browser says the page has
	Site       string // relying party id that is signed; "" for the one that was asked for
	Count      uint32 // of signatures; goes up by one each time, unless Still
	Still      bool
	Unverified bool // the person did not prove to the device that they are its owner
	Absent     bool // nobody touched it
	Framed     bool // the page is inside one of another origin

	ID     []byte
	handle []byte
	key    *ecdsa.PrivateKey
}

// New makes an authenticator in a browser at this origin.
func New(origin string) *Authenticator { return &Authenticator{Origin: origin} }

// Copy is a clone: the same key in other hands.
func (a *Authenticator) Copy() *Authenticator {
	c := *a
	return &c
}

// question is what of both kinds of options matters here.
type question struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Allow   []json.RawMessage `json:"allowCredentials"`
	Exclude []struct {
		ID string `json:"id"`
	} `json:"excludeCredentials"`
	Verification string `json:"userVerification"`
	Selection    struct {
		ResidentKey  string `json:"residentKey"`
		Verification string `json:"userVerification"`
	} `json:"authenticatorSelection"`
}

func read(t testing.TB, options any) question {
	t.Helper()
	raw, ok := options.([]byte)
	if !ok {
		var err error
		raw, err = json.Marshal(options)
		must(t, err)
	}
	var q question
	must(t, json.Unmarshal(raw, &q))
	if q.Challenge == "" {
		t.Fatalf("no question: %s", raw)
	}
	return q
}

// Make answers the options of navigator.credentials.create.
func (a *Authenticator) Make(t testing.TB, options any) []byte {
	t.Helper()
	q := read(t, options)
	if q.Selection.Verification != "required" || q.Selection.ResidentKey != "required" {
		t.Errorf("a passkey that needs no verification would do: %+v", q.Selection)
	}
	for _, excluded := range q.Exclude {
		if excluded.ID == b64(a.ID) {
			t.Error("asked to make a passkey that is there")
		}
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.ID = make([]byte, 32)
	rand.Read(a.ID)
	a.handle, err = base64.RawURLEncoding.DecodeString(q.User.ID)
	must(t, err)
	point, err := a.key.PublicKey.Bytes()
	must(t, err)
	public, err := webauthncbor.Marshal(webauthncose.EC2PublicKeyData{
		PublicKeyData: webauthncose.PublicKeyData{KeyType: int64(webauthncose.EllipticKey), Algorithm: int64(webauthncose.AlgES256)},
		Curve:         int64(webauthncose.P256), XCoord: point[1:33], YCoord: point[33:],
	})
	must(t, err)
	data := a.data(q.RP.ID, 0x40)
	data = append(data, make([]byte, 16)...) // no model
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.ID)))
	data = append(append(data, a.ID...), public...)
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	must(t, err)
	return a.answer(t, map[string]any{
		"clientDataJSON": b64(a.client(t, "webauthn.create", q.Challenge)), "attestationObject": b64(object), "transports": []string{"internal"},
	})
}

// Sign answers the options of navigator.credentials.get.
func (a *Authenticator) Sign(t testing.TB, options any) []byte {
	t.Helper()
	q := read(t, options)
	if q.Verification != "required" || len(q.Allow) > 0 {
		t.Errorf("the question names passkeys or does without verification: %+v", q)
	}
	if !a.Still {
		a.Count++
	}
	data, client := a.data(q.RPID, 0), a.client(t, "webauthn.get", q.Challenge)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(append([]byte{}, data...), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, digest[:])
	must(t, err)
	return a.answer(t, map[string]any{
		"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(a.handle),
	})
}

func (a *Authenticator) data(site string, flags byte) []byte {
	if a.Site != "" {
		site = a.Site
	}
	if !a.Absent {
		flags |= 0x01
	}
	if !a.Unverified {
		flags |= 0x04
	}
	hash := sha256.Sum256([]byte(site))
	return binary.BigEndian.AppendUint32(append(hash[:], flags), a.Count)
}

func (a *Authenticator) client(t testing.TB, kind, challenge string) []byte {
	t.Helper()
	client := map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": a.Framed}
	raw, err := json.Marshal(client)
	must(t, err)
	return raw
}

func (a *Authenticator) answer(t testing.TB, response map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"id": b64(a.ID), "rawId": b64(a.ID), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{},
	})
	must(t, err)
	return raw
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
