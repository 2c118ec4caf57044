package native

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolward/toolward/sandbox"
)

func TestProgramInsideIsKilled(t *testing.T) {
	e := testEngine(t, Options{})
	spec := testSpec(t, t.TempDir())
	handle := ensure(t, e, spec)
	process, err := handle.Start(t.Context(), sandbox.Command{Argv: []string{"/bin/sleep", "1000.25"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(handle.(*box).helper.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := process.Wait(ctx); sandbox.CodeOf(err) != sandbox.CodeUnavailable {
		t.Errorf("a command whose sandbox was killed: %v, want %s", err, sandbox.CodeUnavailable)
	}
	select {
	case <-handle.Done():
	case <-ctx.Done():
		t.Fatal("the sandbox does not know that it has ended")
	}
	if running("1000.25") {
		t.Error("a process has outlived its sandbox")
	}
	if out, err := output(ctx, ensure(t, e, spec), "echo again"); out != "again\n" {
		t.Errorf("a new sandbox says %q, %v", out, err)
	}
}

// running reports whether a process of the machine has a text in its arguments.
func running(marker string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if strings.Contains(content(path), marker) {
			return true
		}
	}
	return false
}

// gatewayVariable makes this test the gateway that is killed.
const gatewayVariable = "TOOLWARD_TEST_GATEWAY"

func TestGatewayIsKilled(t *testing.T) {
	const marker, instance = "1000.5", "killed gateway"
	switch os.Getenv(gatewayVariable) {
	case "namespaces":
		gateway(t, Options{Instance: instance, program: insideFile(t)}, testSpec(t, t.TempDir()), marker)
	case "landlock":
		gateway(t, Options{Instance: instance, program: insideFile(t), noNamespaces: true}, landlockSpec(t, t.TempDir()), marker)
	}
	e := testEngine(t, Options{Instance: instance}) // skips where there are no sandboxes
	killGateway(t, "namespaces", marker)
	if h, err := e.groups(); err == nil {
		left, _ := os.ReadDir(h.dirs("")[0])
		if !slices.ContainsFunc(left, fs.DirEntry.IsDir) {
			t.Errorf("the gateway that was killed had no group below %s, where the next one looks", h.dirs("")[0])
		}
	}
	if _, abi := e.checkLandlock(); os.Geteuid() != 0 && abi >= landlockScopes {
		killGateway(t, "landlock", marker)
	}
	// What cannot end by itself is removed by the next gateway.
	if err := e.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// gateway runs twenty commands until it is killed.
func gateway(t *testing.T, options Options, spec *sandbox.Spec, marker string) {
	t.Helper()
	handle := ensure(t, New(options), spec)
	for range 20 {
		if _, err := handle.Start(t.Context(), sandbox.Command{Shell: "sleep " + marker + " & setsid sleep " + marker}); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("ready")
	select {}
}

func killGateway(t *testing.T, kind, marker string) {
	t.Helper()
	gateway := exec.Command(os.Args[0], "-test.run=^TestGatewayIsKilled$")
	gateway.Env = append(os.Environ(), gatewayVariable+"="+kind, "TMPDIR="+t.TempDir())
	gateway.Stderr = os.Stderr
	out, err := gateway.StdoutPipe()
	if err == nil {
		err = gateway.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for said.Scan() && said.Text() != "ready" {
		t.Log(said.Text())
	}
	if said.Text() != "ready" {
		gateway.Process.Kill()
		t.Fatalf("the gateway did not start: %v", gateway.Wait())
	}
	eventually(t, "the commands run", func() bool { return running(marker) })
	gateway.Process.Kill() // Wait says how it ended
	gateway.Wait()         // it was killed
	eventually(t, "every process has ended with its gateway", func() bool { return !running(marker) })
}
