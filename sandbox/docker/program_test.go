package docker

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/live"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/docker/rootfs"
	"github.com/toolward/toolward/sandbox/inside"
)

// What keeps the program inside from running is named, with what mends it, and nothing is left.
func TestProgramThatCannotRun(t *testing.T) {
	e := testEngine(t)
	real, err := inside.FindProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(real.Path)
	if err != nil {
		t.Fatal(err)
	}
	foreign := bytes.Clone(content)
	foreign[18], foreign[19] = 0xf3, 0 // RISC-V, in the header of an ELF file
	for name, c := range map[string]struct {
		content []byte
		mode    os.FileMode
		says    string
	}{
		"not executable":       {content, 0o644, "may not run"},
		"of another processor": {foreign, 0o755, "is no program for"},
		"in need of a library": {bytes.Replace(dynamic(t), []byte("/lib64/ld-linux"), []byte("/lib64/no-linux"), 1), 0o755, "needs libraries"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "toolward-inside")
			if err := os.WriteFile(path, c.content, c.mode); err != nil {
				t.Fatal(err)
			}
			refuses(t, e, path, c.says)
		})
	}
	t.Run("noexec", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("not run: only root can mount a file system")
		}
		dir, err := os.MkdirTemp("", "toolward-docker-noexec") // tests of other packages look for mounts
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(dir) })
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "noexec,mode=755", "none", dir).CombinedOutput(); err != nil {
			t.Skipf("not run: nothing can be mounted: %v: %s", err, out)
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		})
		path := filepath.Join(dir, "toolward-inside")
		if err := os.WriteFile(path, content, 0o755); err != nil {
			t.Fatal(err)
		}
		refuses(t, e, path, "(noexec)")
		e.options.program = &inside.Program{Path: path}
		if found, err := e.Probe(t.Context()); err != nil || found.Works() {
			t.Errorf("the check says %+v, %v", found, err)
		}
	})
}

// refuses checks that no sandbox is made with a program.
func refuses(t *testing.T, e *Engine, path, says string) {
	t.Helper()
	e.options.program = &inside.Program{Path: path}
	defer func() { e.options.program = nil }()
	spec := testSpec(t, newWorkspace(t))
	_, err := e.Ensure(t.Context(), spec)
	refusal, _ := err.(*sandbox.Error)
	if sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), says) || refusal == nil || refusal.Fix == "" {
		t.Errorf("got %v, want %q and a remedy", err, says)
	}
	if _, err := e.Lookup(t.Context(), spec.Name); sandbox.CodeOf(err) != sandbox.CodeNotFound {
		t.Errorf("its container is left: %v", err)
	}
}

// dynamic is a program of this machine that needs libraries.
func dynamic(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("/bin/ls")
	if err != nil {
		t.Skip("not run: " + err.Error())
	}
	return content
}

func TestImageOfAnotherMachine(t *testing.T) {
	e := testEngine(t)
	name := imageName() + "-foreign"
	cmd := exec.Command(live.Need(t, live.Program("docker")), "load")
	cmd.Stdin = foreignImage(t, name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker load: %v: %s", err, out)
	}
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	spec := testSpec(t, newWorkspace(t))
	spec.Docker.Image = name
	if _, err := e.Ensure(t.Context(), spec); sandbox.CodeOf(err) != sandbox.CodeUnavailable || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("an image of another architecture: %v", err)
	}
}

// foreignImage is an image for another processor, as container engines load it.
func foreignImage(t *testing.T, name string) io.Reader {
	t.Helper()
	var layer, image bytes.Buffer
	if err := rootfs.Busybox(t.Context(), &layer); err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"architecture":"riscv64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, sha256.Sum256(layer.Bytes()))
	w := tar.NewWriter(&image)
	for name, content := range map[string][]byte{"manifest.json": manifest, "config.json": []byte(config), "layer.tar": layer.Bytes()} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &image
}
