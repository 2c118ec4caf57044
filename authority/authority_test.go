package authority

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const passphrase = "maple tractor lantern"

func made(t *testing.T) (*Keys, string) {
	t.Helper()
	dir := t.TempDir()
	k := Open(dir, nil)
	if err := k.Unlock(passphrase); err != nil {
		t.Fatal(err)
	}
	return k, dir
}

func accept(t *testing.T, k *Keys, content string) {
	t.Helper()
	if err := k.About("list").Accept(t.Context(), []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func accepted(k *Keys) string { return string(k.About("list").Accepted()) }

// TestSignedSurvives: what was signed counts after a restart, before anybody signs in; to sign more takes the passphrase.
func TestSignedSurvives(t *testing.T) {
	k, dir := made(t)
	accept(t, k, "jq")
	again := Open(dir, nil)
	if accepted(again) != "jq" || again.Trouble() != nil || again.Fingerprint() != k.Fingerprint() {
		t.Fatalf("%q %v", accepted(again), again.Trouble())
	}
	if err := again.About("list").Accept(t.Context(), []byte("jq git")); !errors.Is(err, ErrLocked) {
		t.Errorf("signed without the passphrase: %v", err)
	}
	if err := again.Unlock("maple tractor lanterns"); !errors.Is(err, ErrForeign) {
		t.Errorf("another passphrase: %v", err)
	}
	if err := again.Unlock(passphrase); err != nil {
		t.Fatal(err)
	}
	accept(t, again, "jq git")
	if got := accepted(Open(dir, nil)); got != "jq git" {
		t.Errorf("%q", got)
	}
	if info, err := os.Stat(filepath.Join(dir, FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// TestForgedCountsForNothing: what a program writes that has no key does not count, in whichever part of the file.
func TestForgedCountsForNothing(t *testing.T) {
	foreign, _ := made(t)
	accept(t, foreign, "everything")
	for name, forge := range map[string]func(d *document){
		"another statement": func(d *document) { d.Statements["list"] = []byte("everything") },
		"one more":          func(d *document) { d.Statements["more"] = []byte("everything") },
		"a higher number":   func(d *document) { d.Serial = 99 },
		"another key":       func(d *document) { d.Key = foreign.doc.Key },
		"a foreign signature": func(d *document) {
			d.Statements["list"], d.Signature = []byte("everything"), foreign.doc.Signature
		},
		"no signature": func(d *document) { d.Signature = nil },
		"cheap seal":   func(d *document) { d.Seals[0].Memory = 8 },
		"no seal":      func(d *document) { d.Seals = nil },
	} {
		t.Run(name, func(t *testing.T) {
			k, dir := made(t)
			accept(t, k, "jq")
			path := filepath.Join(dir, FileName)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var d document
			if err := json.Unmarshal(content, &d); err != nil {
				t.Fatal(err)
			}
			forge(&d)
			if content, err = d.encode(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			forged := Open(dir, nil)
			if forged.Trouble() == nil || accepted(forged) != "" || forged.About("more").Accepted() != nil {
				t.Fatalf("counts: %q, trouble %v", accepted(forged), forged.Trouble())
			}
			if err := forged.Unlock(passphrase); err == nil && accepted(forged) != "" {
				t.Errorf("a sign-in makes it count: %q", accepted(forged))
			}
		})
	}
}

// TestExchangedFile: a home whose whole file was exchanged for that of somebody else lets the person's passphrase open nothing.
func TestExchangedFile(t *testing.T) {
	_, dir := made(t)
	theirs := t.TempDir()
	other := Open(theirs, nil)
	if err := other.Unlock("velvet anchor seven"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(theirs, FileName))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, FileName), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Open(dir, nil).Unlock(passphrase); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// TestUntrustedFile: links, files of several names and files that others can write are not read.
func TestUntrustedFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a link":      func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)) },
		"two names":   func(path string) error { return os.Link(path, path+"2") },
		"others' too": func(path string) error { return os.Chmod(path, 0o666) },
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"their home":  func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			k, dir := made(t)
			accept(t, k, "jq")
			if err := spoil(filepath.Join(dir, FileName)); err != nil {
				t.Fatal(err)
			}
			if again := Open(dir, nil); again.Trouble() == nil || accepted(again) != "" {
				t.Errorf("counts: %q", accepted(again))
			}
		})
	}
}

// TestTighterAtOnce: what becomes less counts without a key, and is signed with the next sign-in.
func TestTighterAtOnce(t *testing.T) {
	k, dir := made(t)
	accept(t, k, "jq git")
	locked := Open(dir, nil)
	locked.About("list").Tighten([]byte("jq"))
	if accepted(locked) != "jq" {
		t.Errorf("%q", accepted(locked))
	}
	if err := locked.Unlock(passphrase); err != nil {
		t.Fatal(err)
	}
	if got := accepted(Open(dir, nil)); got != "jq" {
		t.Errorf("after a restart %q", got)
	}
}

// TestReseal: a new passphrase opens the same key, and the old one does not any more; in between both do.
func TestReseal(t *testing.T) {
	k, dir := made(t)
	accept(t, k, "jq")
	commit, err := k.Reseal(passphrase, "velvet anchor seven")
	if err != nil {
		t.Fatal(err)
	}
	for _, either := range []string{passphrase, "velvet anchor seven"} {
		if err := Open(dir, nil).Unlock(either); err != nil {
			t.Errorf("%s: %v", either, err)
		}
	}
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	if err := Open(dir, nil).Unlock(passphrase); !errors.Is(err, ErrForeign) {
		t.Errorf("the old one: %v", err)
	}
	again := Open(dir, nil)
	if err := again.Unlock("velvet anchor seven"); err != nil || accepted(again) != "jq" {
		t.Errorf("%v %q", err, accepted(again))
	}
}

// TestChangedMeanwhile: what another program puts in the place of the file while the gateway runs is told, and written over.
func TestChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	var told []string
	k := Open(dir, func(e Event) { told = append(told, e.Name) })
	if err := k.Unlock(passphrase); err != nil {
		t.Fatal(err)
	}
	accept(t, k, "jq git")
	older, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	accept(t, k, "jq")
	if err := os.WriteFile(filepath.Join(dir, FileName), older, 0o600); err != nil {
		t.Fatal(err)
	}
	if accepted(k) != "jq" {
		t.Error("the older file counts")
	}
	accept(t, k, "awk")
	if got := strings.Join(told, ", "); got != "authority key made, authority signed, authority signed, authority file exchanged, authority signed" {
		t.Error(got)
	}
	if now, err := os.ReadFile(filepath.Join(dir, FileName)); err != nil || bytes.Equal(now, older) {
		t.Error("not written anew", err)
	}
}
