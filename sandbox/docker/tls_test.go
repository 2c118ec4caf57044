package docker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// directory is one as DOCKER_CERT_PATH names it: a certificate of this authority, and the one that others are checked by.
func (a *authority) directory(others *authority, usage x509.ExtKeyUsage) string {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "somebody"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	secret, err2 := x509.MarshalPKCS8PrivateKey(key)
	dir := a.t.TempDir()
	err = errors.Join(err, err2,
		os.WriteFile(filepath.Join(dir, "ca.pem"), others.pem, 0o600),
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		a.t.Fatal(err)
	}
	return dir
}

// Over a network both sides show certificates, and nothing else is spoken with.
func TestTLS(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "tcp://" + port.Addr().String()
	port.Close()
	ours, other := newAuthority(t), newAuthority(t)
	server := ours.directory(ours, x509.ExtKeyUsageServerAuth)
	own := live.OwnDockerd(t, "--host", address, "--tlsverify",
		"--tlscacert", filepath.Join(server, "ca.pem"), "--tlscert", filepath.Join(server, "cert.pem"), "--tlskey", filepath.Join(server, "key.pem"))
	t.Setenv(client.EnvOverrideHost, own.Host)
	haveImage(t, false)
	t.Setenv(client.EnvOverrideHost, address)
	for name, c := range map[string]struct{ certs, says string }{
		"an engine of another authority": {ours.directory(other, x509.ExtKeyUsageClientAuth), "signed by unknown authority"},
		"a client of another authority":  {other.directory(ours, x509.ExtKeyUsageClientAuth), "tls: "},
		"a client without a certificate": {"", "HTTP request to an HTTPS server"},
	} {
		t.Setenv(client.EnvOverrideCertPath, c.certs)
		e := New(Options{Instance: t.Name()})
		if _, err := e.Ensure(t.Context(), testSpec(t, newWorkspace(t))); sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if found, err := e.Probe(t.Context()); err != nil || found.Works() {
			t.Errorf("%s: the check says %+v, %v", name, found, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv(client.EnvOverrideCertPath, ours.directory(ours, x509.ExtKeyUsageClientAuth))
	e := newEngine(t)
	if _, err := e.connect(); err != nil {
		t.Fatal(err)
	}
	e.contained = "" // it is on this machine, which may be a container
	spec := testSpec(t, newWorkspace(t))
	h := ensure(t, e, spec)
	alive(t, h)
	p := begin(t, h, "sleep", "600")
	remove(t, e, spec.Name)
	lost(t, p)
}
