package companion_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/internal/live"
)

const findVariable = "TOOLWARD_TEST_FIND"

// TestMain makes this test binary one that says which programs it finds.
func TestMain(m *testing.M) {
	if names := os.Getenv(findVariable); names != "" {
		for _, name := range strings.Fields(names) {
			program, found, err := companion.Installed(name)
			fmt.Println(program.Path, program.Args, found, err != nil)
			if found || err != nil {
				program, again := companion.Find(context.Background(), name)
				fmt.Println(program.Path, program.Args, again != nil)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What an administrator has installed comes before what anybody else could have exchanged, and where it was exchanged nothing
// stands in for it.
func TestWhatAnAdministratorInstalledComesFirst(t *testing.T) {
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		if live.All() {
			t.Fatalf("TOOLWARD_LIVE=all, but there is no namespace for a /usr/local of its own: %v: %s", err, out)
		}
		t.Skipf("only root can have a /usr/local of its own: %v: %s", err, out)
	}
	const libexec = companion.Libexec
	for setup, want := range map[string]string{
		"true":                               " [] false false\n",
		"mkdir -p $L":                        " [] false false\n",
		"mkdir -p $L; touch $L/toolward-run": libexec + "/toolward-run [] true false\n" + libexec + "/toolward-run [] false\n",
		"mkdir -p $L; touch $L/toolward":     libexec + "/toolward [run] true false\n" + libexec + "/toolward [run] false\n",
		"mkdir -p $L; touch $L/toolward-run; chmod 666 $L/toolward-run":      " [] false true\n [] true\n",
		"mkdir -p $L; touch $L/toolward-run; chown 64123 $L/toolward-run":    " [] false true\n [] true\n",
		"mkdir -p $L; touch $L/toolward-run; chown 64123 /usr/local/libexec": " [] false true\n [] true\n",
		"mkdir -p $L; ln -s /bin/true $L/toolward-run":                       " [] false true\n [] true\n",
		"chown 64123 /usr/local":                                             " [] false false\n", // as where a package manager of the person has it
	} {
		c := exec.Command("unshare", "--mount", "sh", "-c", "set -e; mount -t tmpfs -o mode=755 none /usr/local; L="+libexec+"; "+setup+`; exec "$0"`, os.Args[0])
		c.Env = []string{"PATH=" + os.Getenv("PATH"), findVariable + "=toolward-run", "HOME=" + filepath.Join(t.TempDir(), "none")}
		if out, err := c.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %v\n%swant\n%s", setup, err, out, want)
		}
	}
}
