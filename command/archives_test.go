package command

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

// tarred is the text of an archive; "a>b" is a link a that leads to b.
func tarred(t *testing.T, names ...string) string {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range names {
		name, to, link := strings.Cut(name, ">")
		head := &tar.Header{Name: name, Mode: 0o600, Typeflag: tar.TypeReg}
		switch {
		case strings.HasSuffix(name, "/"):
			head.Typeflag = tar.TypeDir
		case link:
			head.Typeflag, head.Linkname = tar.TypeSymlink, to
		}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func gzipped(t *testing.T, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, text) // a bytes.Buffer takes all
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zipped(t *testing.T, names ...string) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range names {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The names in an archive are judged as if they were operands.
func TestArchivesAreLookedInto(t *testing.T) {
	plain := tarred(t, "./", "x/", "x/a.txt", "x/b>a.txt")
	files := map[string]string{
		"/ws/.git/HEAD": "f", "/ws/plain.tar": "t:" + plain, "/ws/plain.tgz": "t:" + gzipped(t, plain), "/ws/plain.zip": "t:" + zipped(t, "x/a.txt", "y/"),
		"/ws/git.tar": "t:" + tarred(t, "x/a.txt", ".git/config"), "/ws/client.tgz": "t:" + gzipped(t, tarred(t, ".claude/settings.json")),
		"/ws/client.zip": "t:" + zipped(t, ".claude/settings.json"), "/ws/mcp.tar": "t:" + tarred(t, "x/a", "./.mcp.json"), "/ws/env.zip": "t:" + zipped(t, "deep/er/.env"),
		"/ws/strip.tar": "t:" + tarred(t, "x/ok", "x/.vscode/tasks.json"), "/ws/link.tar": "t:" + tarred(t, "c>/home/dev/.toolward", "c/a"),
		"/ws/up.tar": "t:" + tarred(t, "c>../..", "d"), "/ws/dots.tar": "t:" + tarred(t, "x/../../y"), "/ws/noise.tar": "t:no archive", "/ws/empty.tar": "t:",
		"/ws/cut.tgz": "t:" + gzipped(t, plain)[:40], "/ws/x.tar.xz": "t:\xfd7zXZ\x00", "/ws/hook.tar": "t:" + tarred(t, "hooks/pre-commit"), "/ws/lib.a": "f", "/ws/out": "d",
	}
	for _, name := range strings.Fields("tar unzip mkdir 7z ar cpio gzip") {
		files["/usr/bin/"+name] = "x"
	}
	w := newWorld(t, files)
	w.asks(t, "tar xf git.tar", "tar xf git.tar -C out", "tar -xzf client.tgz", "tar --extract --file client.tgz", "tar xf mcp.tar", "unzip client.zip", "unzip client", "unzip -o env.zip -d out",
		"tar xf strip.tar --strip-components=1", "tar xf link.tar", "tar xf up.tar", "tar xf dots.tar", "tar xf noise.tar", "tar xf empty.tar", "tar xzf cut.tgz", "tar xJf x.tar.xz",
		"tar xf hook.tar -C .git", "gzip -dc plain.tgz | tar xf -", "cp git.tar plain.tar && tar xf plain.tar", "7z x client.zip", "ar x lib.a", "cpio -i < plain.tar",
		"cd out && tar xf ../git.tar", "bash -c 'tar xf git.tar'",
		"tar xf plain.tar && make -C x", "unzip plain.zip && cd x && npm test", "tar xf missing.tgz; npm ci", "bash -c 'tar xf plain.tar && make'", "find . -name plain.tar -exec tar xf {} + && make")
	w.runs(t, "tar xf plain.tar", "tar xzf plain.tgz -C out", "unzip plain.zip", "7z x plain.zip", "unzip -o plain.zip -d out", "mkdir -p new && tar xf plain.tar -C new", "tar tf git.tar", "unzip -l client.zip",
		"tar xf plain.tar --strip-components=1", "tar xf missing.tar", "tar cf new.tar out", "tar cf new.tar out && make", "tar xf plain.tar && cat x/a.txt")
}
