package live

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// Build puts a program of this module at a path, without libraries: built, or from the directory that [ProgramsVariable]
// names.
func Build(t testing.TB, program, at string) {
	t.Helper()
	if dir := os.Getenv(ProgramsVariable); dir != "" {
		data, err := os.ReadFile(filepath.Join(dir, path.Base(program)))
		if err == nil {
			err = os.WriteFile(at, data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", at, "github.com/toolward/toolward/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", program, err, out)
	}
}
