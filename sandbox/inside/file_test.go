//go:build linux

package inside_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/inside"
)

// newFileBox has a read-only mount beside the workspace, and something outside of both.
func newFileBox(t testing.TB, change ...func(*inside.Setup)) (b *box, readOnly, outside string) {
	readOnly, outside = realDir(t), realDir(t)
	must(t, os.WriteFile(filepath.Join(readOnly, "file"), []byte("read-only"), 0o644))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644))
	b = newBox(t, append([]func(*inside.Setup){func(s *inside.Setup) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Target: readOnly})
	}}, change...)...)
	return b, readOnly, outside
}

func TestReading(t *testing.T) {
	b, readOnly, outside := newFileBox(t)
	b.put("file", "0123456789")
	b.put("-rf", "a name like an option")
	b.put("name (deleted)", "still there")
	must(t, os.Symlink("file", b.path("link")))
	must(t, os.Symlink(filepath.Join(readOnly, "file"), b.path("link-to-read-only")))
	must(t, os.Symlink(outside, b.path("dir-out")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), b.path("out")))
	must(t, os.Symlink("/proc/self/fd/0", b.path("proc")))
	must(t, os.Symlink("loop", b.path("loop")))
	must(t, os.Mkdir(b.path("dir"), 0o755))
	must(t, unix.Mkfifo(b.path("fifo"), 0o644))
	must(t, os.Link(b.put("linked", "text"), b.path("other-name")))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer unix.Close(socket)
	must(t, unix.Bind(socket, &unix.SockaddrUnix{Name: b.path("socket")}))
	for _, test := range []struct {
		path          string
		offset, limit int64
		want          string
		code          sandbox.Code
	}{
		{b.path("file"), 0, 100, "0123456789", ""},
		{b.path("file"), 3, 4, "3456", ""},
		{b.path("file"), 8, 100, "89", ""},
		{b.path("file"), 100, 100, "", ""},
		{b.path("file"), 0, 0, "", ""},
		{b.path("-rf"), 0, 100, "a name like an option", ""},
		{b.path("name (deleted)"), 0, 100, "still there", ""},
		{b.path("link"), 0, 100, "0123456789", ""},
		{b.path("dir/../file"), 0, 100, "0123456789", ""},
		{filepath.Join(readOnly, "file"), 0, 100, "read-only", ""},
		{b.path("link-to-read-only"), 0, 100, "read-only", ""},
		{b.path("none"), 0, 100, "", sandbox.CodeNotFound},
		{b.path("file/x"), 0, 100, "", sandbox.CodeDirectory},
		{b.path("out"), 0, 100, "", sandbox.CodeEscape},
		{b.path("dir-out/secret"), 0, 100, "", sandbox.CodeEscape},
		{b.path("dir-out/none"), 0, 100, "", sandbox.CodeEscape},
		{b.path("../" + filepath.Base(outside) + "/secret"), 0, 100, "", sandbox.CodeEscape},
		{"/etc/passwd", 0, 100, "", sandbox.CodeEscape},
		{b.path("proc"), 0, 100, "", sandbox.CodeEscape},
		{b.path("loop"), 0, 100, "", sandbox.CodeEscape},
		{"file", 0, 100, "", sandbox.CodeEscape},
		{b.path("dir"), 0, 100, "", sandbox.CodeDirectory},
		{b.path("fifo"), 0, 100, "", sandbox.CodeNotRegular},
		{b.path("socket"), 0, 100, "", sandbox.CodeNotRegular},
		{b.path("linked"), 0, 100, "", sandbox.CodeHardlink},
	} {
		data, info, err := b.ReadFile(b.context(), test.path, test.offset, test.limit)
		if string(data) != test.want || sandbox.CodeOf(err) != test.code {
			t.Errorf("read %s from %d: %q, %v; want %q, %q", test.path, test.offset, data, err, test.want, test.code)
		}
		if err == nil && (info.Type != sandbox.TypeRegular || info.Identity.Inode == 0 || info.Path == "") {
			t.Errorf("read %s: %+v", test.path, info)
		}
	}
}

func TestReadingWithSeveralNames(t *testing.T) {
	b, _, _ := newFileBox(t, func(s *inside.Setup) { s.Hardlinks = true })
	must(t, os.Link(b.put("linked", "text"), b.path("other-name")))
	if data, _, err := b.ReadFile(b.context(), b.path("linked"), 0, 100); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	_, err := b.WriteFile(b.context(), b.path("linked"), nil, sandbox.WriteOptions{})
	wantCode(t, "write", err, sandbox.CodeHardlink)
}

func TestLargeFiles(t *testing.T) {
	b, _, _ := newFileBox(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB
	info, err := b.WriteFile(b.context(), b.path("big"), big, sandbox.WriteOptions{})
	must(t, err)
	if info.Size != int64(len(big)) || b.content("big") != string(big) {
		t.Errorf("%+v", info)
	}
	got, again, err := b.ReadFile(b.context(), b.path("big"), 5, 1<<30)
	must(t, err)
	if !bytes.Equal(got, big[5:]) || again.Identity != info.Identity {
		t.Errorf("%d bytes of %+v", len(got), again)
	}
	got, _, err = b.ReadFile(b.context(), b.path("big"), 0, 1<<20)
	must(t, err)
	if !bytes.Equal(got, big[:1<<20]) {
		t.Errorf("%d bytes", len(got))
	}
}

func TestWriting(t *testing.T) {
	b, readOnly, outside := newFileBox(t, func(s *inside.Setup) { s.Protected = []string{".git/hooks", ".envrc"} })
	b.put("file", "old")
	must(t, os.Chmod(b.path("file"), 0o751))
	must(t, os.Symlink("file", b.path("link")))
	must(t, os.Symlink("new-through-link", b.path("dangling")))
	must(t, os.Symlink(filepath.Join(outside, "new"), b.path("dangling-out")))
	must(t, os.Symlink(outside, b.path("dir-out")))
	must(t, os.Symlink(".git/hooks", b.path("hooks")))
	must(t, os.MkdirAll(b.path("deep/.git/hooks"), 0o755))
	must(t, os.MkdirAll(b.path(".git/hooks"), 0o755))
	must(t, unix.Mkfifo(b.path("fifo"), 0o644))
	for _, test := range []struct {
		path    string
		options sandbox.WriteOptions
		code    sandbox.Code
	}{
		{b.path("file"), sandbox.WriteOptions{}, ""},
		{b.path("link"), sandbox.WriteOptions{}, ""},
		{b.path("dangling"), sandbox.WriteOptions{}, ""},
		{b.path("a/b/c"), sandbox.WriteOptions{Parents: true}, ""},
		{b.path("x/y"), sandbox.WriteOptions{}, sandbox.CodeNotFound},
		{b.path("file"), sandbox.WriteOptions{Missing: true}, sandbox.CodeExists},
		{b.path("fresh"), sandbox.WriteOptions{Missing: true}, ""},
		{b.path("file"), sandbox.WriteOptions{Unchanged: &sandbox.Identity{Inode: 1}}, sandbox.CodeChanged},
		{b.path("gone"), sandbox.WriteOptions{Unchanged: &sandbox.Identity{Inode: 1}}, sandbox.CodeChanged},
		{filepath.Join(readOnly, "file"), sandbox.WriteOptions{}, sandbox.CodeReadOnly},
		{filepath.Join(readOnly, "a/b"), sandbox.WriteOptions{Parents: true}, sandbox.CodeReadOnly},
		{b.path("dangling-out"), sandbox.WriteOptions{}, sandbox.CodeEscape},
		{b.path("dir-out/new"), sandbox.WriteOptions{}, sandbox.CodeEscape},
		{b.path("dir-out/a/b"), sandbox.WriteOptions{Parents: true}, sandbox.CodeEscape},
		{b.path("fifo"), sandbox.WriteOptions{}, sandbox.CodeNotRegular},
		{b.path("fifo"), sandbox.WriteOptions{Append: true}, sandbox.CodeNotRegular},
		{b.dir, sandbox.WriteOptions{}, sandbox.CodeDirectory},
		{b.path("deep"), sandbox.WriteOptions{}, sandbox.CodeDirectory},
		{b.path(".git/hooks/pre-commit"), sandbox.WriteOptions{}, sandbox.CodeReadOnly},
		{b.path("hooks/pre-commit"), sandbox.WriteOptions{}, sandbox.CodeReadOnly},
		{b.path("deep/.git/hooks/pre-commit"), sandbox.WriteOptions{}, sandbox.CodeReadOnly},
		{b.path("deep/.GIT/Hooks/x"), sandbox.WriteOptions{Parents: true}, sandbox.CodeReadOnly},
		{b.path("deep/er/.git/hooks/x"), sandbox.WriteOptions{Parents: true}, sandbox.CodeReadOnly},
		{b.path("deep/.envrc"), sandbox.WriteOptions{}, sandbox.CodeReadOnly},
		{b.path("deep/.envrc2"), sandbox.WriteOptions{}, ""},
		{b.path("deep/.git/config"), sandbox.WriteOptions{}, ""},
	} {
		info, err := b.WriteFile(b.context(), test.path, []byte("new"), test.options)
		wantCode(t, fmt.Sprintf("write %s %+v", test.path, test.options), err, test.code)
		if test.code != "" {
			continue
		}
		if content, _ := os.ReadFile(test.path); string(content) != "new" || info.Size != 3 || info.Links != 1 {
			t.Errorf("write %s: %q, %+v", test.path, content, info)
		}
		if again, err := b.Stat(b.context(), test.path); err != nil || again.Identity != info.Identity {
			t.Errorf("write %s: told %+v, it is %+v (%v)", test.path, info, again, err)
		}
	}
	if st, _ := os.Stat(b.path("file")); st.Mode().Perm() != 0o751 {
		t.Errorf("mode %v", st.Mode())
	}
	if st, _ := os.Lstat(b.path("link")); st.Mode().Type() != os.ModeSymlink {
		t.Error("the link was replaced, not what it leads to")
	}
	noneLeft(t, b.dir, outside, readOnly)
}

// noneLeft fails if a file that was being written is still there.
func noneLeft(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(p string, _ os.DirEntry, _ error) error {
			if strings.HasPrefix(filepath.Base(p), ".toolward-write-") {
				t.Errorf("%s was left", p)
			}
			return nil
		})
	}
}

func TestUnchangedAndAppending(t *testing.T) {
	b, _, _ := newFileBox(t)
	first, err := b.WriteFile(b.context(), b.path("file"), []byte("one\n"), sandbox.WriteOptions{})
	must(t, err)
	second, err := b.WriteFile(b.context(), b.path("file"), []byte("two\n"), sandbox.WriteOptions{Unchanged: &first.Identity})
	must(t, err)
	_, err = b.WriteFile(b.context(), b.path("file"), []byte("three\n"), sandbox.WriteOptions{Unchanged: &first.Identity})
	wantCode(t, "an old identity", err, sandbox.CodeChanged)
	_, err = b.WriteFile(b.context(), b.path("file"), []byte("more\n"), sandbox.WriteOptions{Append: true, Unchanged: &second.Identity})
	must(t, err)
	_, err = b.WriteFile(b.context(), b.path("new/file"), []byte("first\n"), sandbox.WriteOptions{Append: true, Parents: true})
	must(t, err)
	if b.content("file") != "two\nmore\n" || b.content("new/file") != "first\n" {
		t.Errorf("%q, %q", b.content("file"), b.content("new/file"))
	}
}

func TestDirectories(t *testing.T) {
	b, readOnly, outside := newFileBox(t, func(s *inside.Setup) { s.Protected = []string{".git/hooks"} })
	ctx := b.context()
	must(t, b.Mkdir(ctx, b.path("a/b/c")))
	must(t, b.Mkdir(ctx, b.path("a/b/c")))
	must(t, b.Mkdir(ctx, readOnly))
	wantCode(t, "mkdir read-only", b.Mkdir(ctx, filepath.Join(readOnly, "x")), sandbox.CodeReadOnly)
	wantCode(t, "mkdir outside", b.Mkdir(ctx, filepath.Join(outside, "x")), sandbox.CodeEscape)
	b.put("file", "text")
	wantCode(t, "mkdir on a file", b.Mkdir(ctx, b.path("file")), sandbox.CodeDirectory)
	wantCode(t, "mkdir below a file", b.Mkdir(ctx, b.path("file/x")), sandbox.CodeDirectory)

	must(t, os.Symlink(outside, b.path("a/out")))
	must(t, os.Symlink("file", b.path("link")))
	b.put("a/b/c/file", "text")
	if err := b.Remove(ctx, b.path("a"), sandbox.RemoveOptions{}); err == nil {
		t.Error("a full directory was removed")
	}
	must(t, b.Remove(ctx, b.path("a"), sandbox.RemoveOptions{Recursive: true}))
	if _, err := os.Stat(filepath.Join(outside, "secret")); err != nil {
		t.Error("removing followed a link:", err)
	}
	must(t, b.Remove(ctx, b.path("link"), sandbox.RemoveOptions{}))
	if b.content("file") != "text" {
		t.Error("removing a link removed what it leads to")
	}
	wantCode(t, "remove nothing", b.Remove(ctx, b.path("none"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeNotFound)
	wantCode(t, "remove the workspace", b.Remove(ctx, b.dir, sandbox.RemoveOptions{Recursive: true}), sandbox.CodeReadOnly)
	wantCode(t, "remove outside", b.Remove(ctx, filepath.Join(outside, "secret"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeEscape)
	wantCode(t, "remove read-only", b.Remove(ctx, filepath.Join(readOnly, "file"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeReadOnly)

	b.put("repo/.git/hooks/x", "")
	wantCode(t, "remove protected", b.Remove(ctx, b.path("repo/.git/hooks"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeReadOnly)
	wantCode(t, "remove what holds it", b.Remove(ctx, b.path("repo/.git"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeReadOnly)
	wantCode(t, "remove what holds that", b.Remove(ctx, b.path("repo"), sandbox.RemoveOptions{Recursive: true}), sandbox.CodeReadOnly)
	wantCode(t, "move what holds it", b.Rename(ctx, b.path("repo/.git"), b.path("repo/x")), sandbox.CodeReadOnly)
	must(t, b.Mkdir(ctx, b.path("evil/hooks")))
	wantCode(t, "become it", b.Rename(ctx, b.path("evil"), b.path("other/.git")), sandbox.CodeReadOnly)

	must(t, b.Rename(ctx, b.path("file"), b.path("new/name")))
	if b.content("new/name") != "text" {
		t.Error("not moved")
	}
	b.put("file", "again")
	wantCode(t, "move onto something", b.Rename(ctx, b.path("file"), b.path("new/name")), sandbox.CodeExists)
	wantCode(t, "move out", b.Rename(ctx, b.path("file"), filepath.Join(outside, "x")), sandbox.CodeEscape)
	wantCode(t, "move in", b.Rename(ctx, filepath.Join(outside, "secret"), b.path("x")), sandbox.CodeEscape)
}

func TestListing(t *testing.T) {
	b, _, outside := newFileBox(t)
	for _, name := range []string{"b", "a", "ä", "c\nd", "-x"} {
		b.put("dir/"+name, "")
	}
	must(t, os.Mkdir(b.path("dir/sub"), 0o755))
	must(t, os.Symlink("b", b.path("dir/link")))
	must(t, unix.Mkfifo(b.path("dir/fifo"), 0o644))
	entries, more, err := b.List(b.context(), b.path("dir"), sandbox.ListOptions{Limit: 100})
	want := "[{-x 1} {a 1} {b 1} {c\nd 1} {fifo 4} {link 3} {sub 2} {ä 1}]"
	if got := fmt.Sprint(entries); got != want || more || err != nil {
		t.Errorf("%s, %v, %v; want %s", got, more, err, want)
	}
	entries, more, err = b.List(b.context(), b.path("dir"), sandbox.ListOptions{Limit: 2})
	if fmt.Sprint(entries) != "[{-x 1} {a 1}]" || !more || err != nil {
		t.Error(entries, more, err)
	}
	for i := range 3000 {
		must(t, os.WriteFile(b.path(fmt.Sprintf("dir/file-%04d", 2999-i)), nil, 0o644))
	}
	entries, more, err = b.List(b.context(), b.path("dir"), sandbox.ListOptions{Limit: 10})
	if err != nil || !more || len(entries) != 10 || entries[9].Name != "file-0004" {
		t.Error(entries, more, err)
	}
	_, _, err = b.List(b.context(), outside, sandbox.ListOptions{Limit: 10})
	wantCode(t, "list outside", err, sandbox.CodeEscape)
	_, _, err = b.List(b.context(), b.path("dir/a"), sandbox.ListOptions{Limit: 10})
	wantCode(t, "list a file", err, sandbox.CodeDirectory)
}

func TestStat(t *testing.T) {
	b, readOnly, outside := newFileBox(t)
	b.put("file", "text")
	must(t, os.Symlink("file", b.path("link")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), b.path("out")))
	for path, want := range map[string]sandbox.FileType{
		b.path("file"): sandbox.TypeRegular, b.path("link"): sandbox.TypeRegular, b.dir: sandbox.TypeDirectory, readOnly + "/": sandbox.TypeDirectory,
	} {
		if info, err := b.Stat(b.context(), path); err != nil || info.Type != want {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
	info, err := b.Lstat(b.context(), b.path("link"))
	if err != nil || info.Type != sandbox.TypeSymlink || info.Path != b.path("link") {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := b.Lstat(b.context(), b.path("out")); err != nil || info.Type != sandbox.TypeSymlink {
		t.Errorf("%+v, %v", info, err)
	}
	for path, code := range map[string]sandbox.Code{
		b.path("out"): sandbox.CodeEscape, outside: sandbox.CodeEscape, "/": sandbox.CodeEscape, outside + "/none": sandbox.CodeEscape,
		b.path("none"): sandbox.CodeNotFound,
	} {
		_, err := b.Stat(b.context(), path)
		wantCode(t, path, err, code)
	}
}

// A full disk is told as such, and leaves the old content.
func TestAFullDisk(t *testing.T) {
	dir := realDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("only who may mount can fill a disk here (%v): a limit of file sizes takes its place", err)
		b := newBox(t, func(s *inside.Setup) { s.Limits.FileSize = 1 << 20 })
		_, err := b.WriteFile(b.context(), b.path("file"), make([]byte, 2<<20), sandbox.WriteOptions{})
		wantCode(t, "write", err, sandbox.CodeTooLarge)
		return
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	b := newBox(t, func(s *inside.Setup) {
		s.Mounts = append(s.Mounts, sandbox.Mount{Target: dir, Writable: true})
		s.Limits.FileSize = 8 << 20
	})
	file := filepath.Join(dir, "file")
	_, err := b.WriteFile(b.context(), file, []byte("old"), sandbox.WriteOptions{})
	must(t, err)
	_, err = b.WriteFile(b.context(), file, make([]byte, 4<<20), sandbox.WriteOptions{})
	wantCode(t, "write", err, sandbox.CodeFull)
	_, err = b.WriteFile(b.context(), file, make([]byte, 4<<20), sandbox.WriteOptions{Append: true})
	wantCode(t, "append", err, sandbox.CodeFull)
	_, err = b.WriteFile(b.context(), b.path("large"), make([]byte, 9<<20), sandbox.WriteOptions{})
	wantCode(t, "too large a file", err, sandbox.CodeTooLarge)
	if content, err := os.ReadFile(file); string(content) != "old" {
		t.Errorf("%q, %v", content, err)
	}
	must(t, b.Rename(b.context(), file, b.path("moved"))) // to another file system
	if b.content("moved") != "old" {
		t.Error("not moved")
	}
	noneLeft(t, dir, b.dir)
	b.shell("head -c 9000000 /dev/zero > too-large")
	if st, err := os.Stat(b.path("too-large")); err != nil || st.Size() > 8<<20 {
		t.Error("the limit of file sizes does not hold for commands", st, err)
	}
}

// A path that was real when something was decided about it is refused when a link stands in it, wherever that leads.
func TestExactPaths(t *testing.T) {
	b, _, _ := newFileBox(t)
	b.put("dir/file", "one")
	b.put("dir/full/file", "two")
	must(t, os.Symlink("dir", b.path("link")))
	must(t, os.Symlink("dir/file", b.path("file-link")))
	ctx := b.context()
	exact := sandbox.RemoveOptions{Exact: true, Recursive: true}
	_, _, err := b.List(ctx, b.path("link"), sandbox.ListOptions{Limit: 10, Exact: true})
	wantCode(t, "list", err, sandbox.CodeChanged)
	wantCode(t, "remove", b.Remove(ctx, b.path("link/file"), exact), sandbox.CodeChanged)
	wantCode(t, "remove a tree", b.Remove(ctx, b.path("link/full"), exact), sandbox.CodeChanged)
	_, err = b.WriteFile(ctx, b.path("link/new/deep/file"), nil, sandbox.WriteOptions{Exact: true, Parents: true})
	wantCode(t, "write", err, sandbox.CodeChanged)
	if _, err := os.Stat(b.path("dir/new")); err == nil {
		t.Error("a directory was made where nobody has allowed it")
	}
	info, err := b.Stat(ctx, b.path("dir/file"))
	must(t, err)
	b.put("dir/file", "three")
	wantCode(t, "remove what was changed", b.Remove(ctx, b.path("dir/file"), sandbox.RemoveOptions{Exact: true, Unchanged: &info.Identity}), sandbox.CodeChanged)
	info, err = b.Stat(ctx, b.path("dir/file"))
	must(t, err)
	entries, _, err := b.List(ctx, b.path("dir"), sandbox.ListOptions{Limit: 10, Exact: true})
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
	must(t, b.Remove(ctx, b.path("dir/file"), sandbox.RemoveOptions{Exact: true, Unchanged: &info.Identity}))
	must(t, b.Remove(ctx, b.path("dir/full"), exact))
	must(t, b.Remove(ctx, b.path("file-link"), exact)) // a link itself
}
