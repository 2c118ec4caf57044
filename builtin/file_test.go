package builtin

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/toolward/toolward"
)

func TestEveryToolIsComplete(t *testing.T) {
	w := newWorld(t)
	var names []string
	for _, tool := range w.box.Tools() {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Facts == nil || tool.Run == nil {
			t.Errorf("%s lacks a part", tool.Name)
		}
		if _, err := tool.Run(context.Background(), &toolward.Request{Tool: tool}); err == nil {
			t.Errorf("%s ran without facts", tool.Name)
		}
	}
	want := []string{"read", "write", "edit", "apply_patch", "list", "search", "exec", "process"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestRead(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ReadBytes = 4096; c.ReadLineChars = 100; c.ImageBytes = 2048 })
	w.put("ws/three", "one\ntwo\nthree\n")
	w.put("ws/bare", "one\ntwo")
	w.put("ws/empty", "")
	w.put("ws/crlf", "a\r\nb\r\n")
	w.put("ws/mark", "\ufeffhello\n")
	w.put("ws/latin1", "caf\xe9\n")
	w.put("ws/binary", "a\x00b")
	w.put("ws/long", strings.Repeat("x", 5000)+"\nend\n")
	w.put("ws/many", strings.Repeat("0123456789\n", 3000))
	w.put("ws/bigimage.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("x", 3000))
	w.put("ws/utf16", utf16File(binary.LittleEndian, "\ufeffgrüße\nzwei\n"))
	w.put("ws/utf16be", utf16File(binary.BigEndian, "\ufeffgrüße\n"))
	w.put("outside/o", "far\n")
	link(t, w.root+"/outside/o", w.workspace+"/link")

	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"whole", args{"path": "three"}, "one\ntwo\nthree\n"},
		{"no line end", args{"path": "bare"}, "one\ntwo\n"},
		{"empty", args{"path": "empty"}, "(the file is empty)"},
		{"offset", args{"path": "three", "offset": 2}, "two\nthree\n"},
		{"offset and limit", args{"path": "three", "offset": 2, "limit": 1}, "two\n\n[lines 2 to 2 shown, more follow: use offset 3]\n"},
		{"limit is the end", args{"path": "three", "limit": 3}, "one\ntwo\nthree\n"},
		{"CRLF", args{"path": "crlf"}, "a\nb\n\n[lines end with CRLF]\n"},
		{"byte order mark", args{"path": "mark"}, "hello\n"},
		{"not UTF-8", args{"path": "latin1"}, "caf\ufffd\n\n[1 bytes are not valid UTF-8 and are shown as \ufffd]\n"},
		{"UTF-16", args{"path": "utf16"}, "grüße\nzwei\n\n[converted from UTF-16, little endian]\n"},
		{"UTF-16 big endian", args{"path": "utf16be"}, "grüße\n\n[converted from UTF-16, big endian]\n"},
		{"long line", args{"path": "long"}, strings.Repeat("x", 100) + " [… line of 5000 bytes, cut]\nend\n\n[1 long lines cut]\n"},
		{"other spelling of the path", args{"file_path": "three", "limit": 1}, "one\n\n[lines 1 to 1 shown, more follow: use offset 2]\n"},
		{"through a link", args{"path": "link"}, "far\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.TB = t
			if got := w.ok("read", c.args); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	w.TB = t
	w.fails("read", args{"path": "binary"}, "binary is a binary file of 3 bytes")
	w.fails("read", args{"path": "missing"}, "missing does not exist")
	w.fails("read", args{"path": "three", "offset": 9}, "offset 9 is beyond the end of three, which has 3 lines")
	w.fails("read", args{"path": "three", "offset": 4}, "which has 3 lines")
	w.fails("read", args{"path": "bigimage.png"}, "an image of 3008 bytes, more than 2048")
	if got := w.ok("read", args{"path": "many"}); len(got) > 4300 || !strings.Contains(got, "because of their size, more follow: use offset") {
		t.Errorf("%d bytes, ending %q", len(got), got[len(got)-100:])
	}
}

func utf16File(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestReadImage(t *testing.T) {
	w := newWorld(t)
	data := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100)
	w.put("ws/a.png", data)
	result := w.run("read", args{"path": "a.png"})
	if len(result.Content) != 2 || result.Content[1].MIME != "image/png" || !bytes.Equal(result.Content[1].Data, []byte(data)) {
		t.Errorf("got %+v", result)
	}
}

func TestReadHugeFile(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ReadScanBytes = 1 << 20 })
	sparse := w.put("ws/sparse", "")
	if err := os.Truncate(sparse, 20<<30); err != nil {
		t.Fatal(err)
	}
	w.fails("read", args{"path": "sparse"}, "is a binary file of 21474836480 bytes")
	w.fails("edit", args{"path": "sparse", "oldText": "a", "newText": "b"}, "too large")

	// A text of one endless line must neither fill the memory nor take long.
	w.put("ws/endless", strings.Repeat("x", 3<<20))
	if got := w.ok("read", args{"path": "endless"}); len(got) > 10_000 {
		t.Errorf("%d bytes", len(got))
	}
	w.fails("read", args{"path": "endless", "offset": 2}, "beyond the first 1048576 bytes")
}

// specials are things that must never be opened as files.
func specials(t *testing.T, w *world) []string {
	t.Helper()
	if err := unix.Mkfifo(w.workspace+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	sock, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(sock)
	t.Chdir(w.workspace)
	if err := syscall.Bind(sock, &syscall.SockaddrUnix{Name: "socket"}); err != nil {
		t.Fatal(err)
	}
	return []string{"fifo", "socket", "/dev/zero"}
}

func TestSpecialFilesAreNeverOpened(t *testing.T) {
	w := newWorld(t)
	kinds := map[string]toolward.Kind{"fifo": "fifo", "socket": "socket", "/dev/zero": "device"}
	for _, name := range specials(t, w) {
		r := w.facts("read", args{"path": name})
		if got := r.Facts.Targets[0].Kind; got != kinds[name] {
			t.Errorf("%s is a %q for the decision, want %q", name, got, kinds[name])
		}
		w.fails("read", args{"path": name}, "is not a regular file")
		w.fails("write", args{"path": name, "content": "x"}, "is not a regular file")
		w.fails("edit", args{"path": name, "oldText": "a", "newText": "b"}, "is not a regular file")
		w.fails("search", args{"path": name, "pattern": "x"}, name+" is a")
	}
}

func TestBadPathsNeverReachTheDisk(t *testing.T) {
	w := newWorld(t)
	for name, path := range map[string]string{
		"NUL": "a\x00b", "line break": "a\nb", "empty": "", "too long": strings.Repeat("a/", 3000), "long name": strings.Repeat("n", 300),
		"other spelling of a guarded name": ".git /config",
	} {
		for _, tool := range []string{"read", "write", "edit", "list"} {
			if tool == "list" && path == "" {
				continue // the working directory
			}
			a := args{"path": path}
			switch tool {
			case "write":
				a["content"] = "x"
			case "edit":
				a["oldText"], a["newText"] = "a", "b"
			}
			if _, err := w.request(tool, a); err == nil {
				t.Errorf("%s took a path with %s", tool, name)
			}
		}
		if path == "" || strings.Contains(path, "\n") {
			continue // cannot be written in a patch
		}
		if _, err := w.request("apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch"}); err == nil {
			t.Errorf("apply_patch took a path with %s", name)
		}
	}
	w.tidy("ws")
}

func TestDirectoriesAreNoFiles(t *testing.T) {
	w := newWorld(t)
	for tool, a := range map[string]args{
		"read": {"path": "."}, "write": {"path": ".", "content": "x"}, "edit": {"path": ".", "oldText": "a", "newText": "b"},
	} {
		if _, err := w.request(tool, a); err == nil || !strings.Contains(err.Error(), "is a directory") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	// Outside of the caller's reach nothing is told before the decision.
	if _, err := w.request("read", args{"path": "/etc"}); err != nil {
		t.Errorf("a directory outside: %v", err)
	}
}

func TestWrite(t *testing.T) {
	w := newWorld(t)
	if got := w.ok("write", args{"path": "a/b/new.txt", "content": "hello\n"}); got != "Created a/b/new.txt: 6 bytes." {
		t.Errorf("got %q", got)
	}
	w.holds("ws/a/b/new.txt", "hello\n")

	script := w.put("ws/run.sh", "old")
	if err := os.Chmod(script, 0o750); err != nil {
		t.Fatal(err)
	}
	if got := w.ok("write", args{"path": "run.sh", "content": ""}); got != "Replaced run.sh: 0 bytes." {
		t.Errorf("got %q", got)
	}
	w.holds("ws/run.sh", "")
	if info, _ := os.Stat(script); info.Mode().Perm() != 0o750 {
		t.Errorf("mode is %v, want it kept", info.Mode())
	}
	w.tidy("ws", "a", "run.sh")
}

func TestWriteRefusesHardLinks(t *testing.T) {
	w := newWorld(t)
	secret := w.put("outside/secret", "old")
	if err := os.Link(secret, w.workspace+"/h"); err != nil {
		t.Fatal(err)
	}
	if r := w.facts("write", args{"path": "h", "content": "x"}); r.Facts.Targets[0].Links != 2 {
		t.Errorf("the decision sees %d links, want 2", r.Facts.Targets[0].Links)
	}
	w.fails("write", args{"path": "h", "content": "x"}, "other names")
	w.fails("edit", args{"path": "h", "oldText": "old", "newText": "x"}, "other names")
	w.fails("apply_patch", args{"patch": "*** Begin Patch\n*** Update File: h\n-old\n+x\n*** End Patch"}, "other names")
	w.holds("outside/secret", "old")
}

func TestFactsOfFileTools(t *testing.T) {
	w := newWorld(t)
	w.put("ws/a", "x")
	w.put("ws/.env", "KEY=1")
	link(t, w.outside, w.workspace+"/out")
	for _, c := range []struct {
		tool string
		args args
		want toolward.Target
	}{
		{"read", args{"path": "a"}, toolward.Target{Path: "a", Real: "ws/a", Op: "read", Zone: "workspace", Kind: "file", Links: 1}},
		{"read", args{"path": ".env"}, toolward.Target{Path: ".env", Real: "ws/.env", Op: "read", Zone: "secret", Kind: "file", Links: 1}},
		{"write", args{"path": "n/m", "content": ""}, toolward.Target{Path: "n/m", Real: "ws/n/m", Op: "write", Zone: "workspace", Kind: "missing"}},
		{"write", args{"path": "out/f", "content": ""}, toolward.Target{Path: "out/f", Real: "outside/f", Op: "write", Zone: "outside", Kind: "missing", Left: true}},
		{"edit", args{"path": "../outside/g", "oldText": "a", "newText": "b"}, toolward.Target{Path: "../outside/g", Real: "outside/g", Op: "write", Zone: "outside", Kind: "missing"}},
		{"list", args{}, toolward.Target{Path: ".", Real: "ws", Op: "read", Zone: "workspace", Kind: "directory"}},
		{"search", args{"pattern": "x", "path": "~/.toolward"}, toolward.Target{Path: "~/.toolward", Real: "home/.toolward", Op: "read", Zone: "self", Kind: "directory"}},
	} {
		t.Run(fmt.Sprintf("%s %v", c.tool, c.args["path"]), func(t *testing.T) {
			r := w.facts(c.tool, c.args)
			c.want.Real = w.root + "/" + c.want.Real
			got := r.Facts.Targets[0]
			if got.Kind == "directory" {
				got.Links = 0 // depends on the file system
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if mutates := c.tool == "write" || c.tool == "edit"; r.Facts.Mutates != mutates {
				t.Errorf("mutates is %t", r.Facts.Mutates)
			}
		})
	}
}

// TestSwapBetweenDecisionAndRun replaces what was judged by a link to the outside, after the facts were found and
// before the call runs. No tool may read or write a byte there.
func TestSwapBetweenDecisionAndRun(t *testing.T) {
	for _, c := range []struct {
		tool string
		args args
	}{
		{"read", args{"path": "dir/f"}},
		{"write", args{"path": "dir/f", "content": "evil"}},
		{"write", args{"path": "dir/new", "content": "evil"}},
		{"write", args{"path": "dir/deep/new", "content": "evil"}},
		{"edit", args{"path": "dir/f", "oldText": "secret", "newText": "evil"}},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Update File: dir/f\n-secret\n+evil\n*** End Patch"}},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: dir/f\n*** End Patch"}},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Add File: dir/new\n+evil\n*** End Patch"}},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Update File: dir/f\n*** Move to: dir/g\n*** End Patch"}},
		{"list", args{"path": "dir"}},
		{"search", args{"path": "dir", "pattern": "secret"}},
		{"search", args{"path": "dir/f", "pattern": "secret"}},
		{"exec", args{"workdir": "dir", "command": "cat f"}},
	} {
		for _, swap := range []string{"directory", "file"} {
			t.Run(fmt.Sprintf("%s %v, %s swapped", c.tool, c.args, swap), func(t *testing.T) {
				w := newWorld(t)
				w.put("ws/dir/f", "secret inside\n")
				w.put("outside/f", "secret outside\n")
				r := w.facts(c.tool, c.args)
				if swap == "directory" {
					if err := os.Rename(w.workspace+"/dir", w.workspace+"/was"); err != nil {
						t.Fatal(err)
					}
					link(t, w.outside, w.workspace+"/dir")
				} else {
					if err := os.Remove(w.workspace + "/dir/f"); err != nil {
						t.Fatal(err)
					}
					link(t, w.outside+"/f", w.workspace+"/dir/f")
				}
				result := w.finish(r)
				if got := text(result); strings.Contains(got, "secret outside") && c.tool != "exec" {
					t.Errorf("read from the outside: %q", got)
				}
				w.holds("outside/f", "secret outside\n")
				w.tidy("outside", "f")
				if swap == "directory" && !result.IsError {
					t.Errorf("succeeded: %q", text(result))
				}
			})
		}
	}
}

// TestFileSwappedForFIFO must not block.
func TestFileSwappedForFIFO(t *testing.T) {
	w := newWorld(t)
	file := w.put("ws/f", "x")
	reads, edits := w.facts("read", args{"path": "f"}), w.facts("edit", args{"path": "f", "oldText": "x", "newText": "y"})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*toolward.Request{reads, edits} {
		if result := w.finish(r); !result.IsError || !strings.Contains(text(result), "was changed by someone else") {
			t.Errorf("%s: %q", r.Tool.Name, text(result))
		}
	}
}

func TestEdit(t *testing.T) {
	w := newWorld(t)
	w.put("ws/f", "one\r\ntwo\r\nthree\r\n")
	got := w.ok("edit", args{"path": "f", "oldText": "one\ntwo", "newText": "1\n2", "edits": []args{{"oldText": "three", "newText": "3"}}})
	if got != "Changed f in 2 places: 9 bytes." {
		t.Errorf("got %q", got)
	}
	w.holds("ws/f", "1\r\n2\r\n3\r\n")
	w.fails("edit", args{"path": "f", "oldText": "9", "newText": "x"}, "f was not changed: oldText is not in the file")
	w.fails("edit", args{"path": "gone", "oldText": "9", "newText": "x"}, "gone does not exist")
	w.put("ws/bin", "a\x00b")
	w.fails("edit", args{"path": "bin", "oldText": "a", "newText": "x"}, "the file is binary")
	w.fails("edit", args{"path": "f", "oldText": "1", "newText": "x", "edits": []args{{"oldText": "nope", "newText": ""}}}, "edit 2 of 2")
	w.holds("ws/f", "1\r\n2\r\n3\r\n")
}

func TestDiffShowsWhatWillHappen(t *testing.T) {
	w := newWorld(t)
	w.put("ws/f", "a\nb\n")
	for _, c := range []struct {
		tool string
		args args
		want string
	}{
		{"write", args{"path": "f", "content": "a\nc\n"}, "--- WS/f\n+++ WS/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{"write", args{"path": "n", "content": "x\n"}, "--- /dev/null\n+++ WS/n\n@@ -0,0 +1 @@\n+x\n"},
		{"edit", args{"path": "f", "oldText": "a\n", "newText": ""}, "--- WS/f\n+++ WS/f\n@@ -1,2 +1 @@\n-a\n b\n"},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: f\n*** Add File: g\n+x\n*** End Patch"}, "--- WS/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n--- /dev/null\n+++ WS/g\n@@ -0,0 +1 @@\n+x\n"},
	} {
		r := w.facts(c.tool, c.args)
		got, err := r.Tool.Diff(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.ReplaceAll(c.want, "WS", w.workspace), got); diff != "" {
			t.Errorf("%s: %s", c.tool, diff)
		}
		w.holds("ws/f", "a\nb\n")
	}
}
