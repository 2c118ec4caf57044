package builtin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLoginPath(t *testing.T) {
	shell := func(name, script string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ name, shell, want string }{
		{"answers", shell("bash", `PATH=/opt/tools/bin:/usr/bin; exec /bin/sh -c "$3"`), "/opt/tools/bin:/usr/bin"},
		{"start-up files talk and fail", shell("zsh", `echo Welcome; echo no >&2; PATH=/a:/usr/bin; /bin/sh -c "$3"; exit 3`), "/a:/usr/bin"},
		{"says nothing", shell("sh", ``), ""},
		{"is no shell", shell("python3", `echo`), ""},
		{"is not there", "/no/such/bash", ""},
		{"is relative", "bash", ""},
	} {
		got, err := LoginPath(t.Context(), c.shell)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	for _, real := range []string{"/bin/bash", "/bin/sh"} {
		if got, err := LoginPath(t.Context(), real); err != nil || got == "" {
			t.Errorf("%s: %q, %v", real, got, err)
		}
	}
}

func TestLoginShellThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bash")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 100 & sleep 100\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if got, err := LoginPath(ctx, path); err == nil {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestWithPath(t *testing.T) {
	for _, c := range []struct {
		environ []string
		login   string
		want    string
	}{
		{[]string{"A=1", "PATH=/bin"}, "/opt/bin", "PATH=/opt/bin:/bin"},
		{[]string{"A=1"}, "/opt/bin", "PATH=/opt/bin"},
		{[]string{"A=1", "PATH=/bin"}, "", "PATH=/bin"},
	} {
		got := WithPath(c.environ, c.login)
		if last := got[len(got)-1]; last != c.want {
			t.Errorf("%q", got)
		}
	}
}
