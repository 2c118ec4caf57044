package profiles

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward/shell"
)

// Pieces of which programs are made. What they would start makes a file, so that a trace remains.
var (
	sedPieces = strings.Fields(`s/ / [ ] \ a w@o1 ~ ; } { e@touch@t1 1 $ , ! y/ r@in b t : c\ i a\ I p @ # ^ W@o2 s,x,y,e s|.|touch@t2|e
		\n 2 = d x/y/ s/x/y/w@o3 /x/ /[^]/]/ \] [] &w@o4 \%x% N;P;D T@a v@4 {p;} }w@o5 ]/w@o6 ' n q5 z l@3 R@in F M g 0~2 +1`)
	awkPieces = strings.Fields(`{ } ( ) print print@"x">"o1" print@"x">>"o2" print|"touch@t1" system("touch@t2") "touch@t3"|getline
		/ /x/ /[/]/ /[^]/]/ [ ] \ " "x" ~ # ; , $1 NF BEGIN END x=1 ++ a[1] getline getline@l<"in" ? : && || ! function@f(a) if(1) while(0)
		/=/ /[[.]/ [.x.] "\"" "\\" \n { } @f("x") > >"o3" | |"touch@t4" in delete@a printf("x")>"o4" return 1 / - ^ -v regex/x sub(/x/,"y")`)
)

// TestSedDoesNothingElse and TestAwkDoesNothingElse run programs of which the package says that they are harmless, and
// look whether the real programs agree: nothing may be written, and nothing may be started.
func TestSedDoesNothingElse(t *testing.T) {
	differ(t, []string{"sed", "gsed", "busybox sed"}, sedPieces)
}

func TestAwkDoesNothingElse(t *testing.T) {
	differ(t, []string{"mawk", "gawk", "original-awk", "busybox awk"}, awkPieces)
}

func differ(t *testing.T, programs, pieces []string) {
	ran := 0
	for _, program := range programs {
		argv := strings.Fields(program)
		binary, err := exec.LookPath(argv[0])
		if err != nil {
			continue
		}
		profile := argv[len(argv)-1]
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(7, uint64(differenceTime())))
		tried, harmless := 0, 0
		for start := time.Now(); time.Since(start) < differenceTime(); tried++ {
			text := mixed(random, pieces)
			effects, _ := Effects(profile, []string{text, "in"})
			if slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind != shell.Reads }) {
				continue
			}
			harmless++
			if trace := runTraced(t, dir, binary, append(argv[1:], text, "in")); trace != nil {
				t.Fatalf("%s %q leaves %q, and was told to have only %q", program, text, trace, effects)
			}
		}
		t.Logf("%s: %d programs, %d of them harmless", program, tried, harmless)
		ran += harmless
	}
	if ran == 0 {
		t.Skip("none of these programs is installed")
	}
}

// differenceTime is how long each program is compared; TOOLWARD_DIFFERENCE_TIME=1m makes it longer.
func differenceTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("TOOLWARD_DIFFERENCE_TIME")); err == nil {
		return d
	}
	return time.Second
}

func mixed(random *rand.Rand, pieces []string) string {
	var b strings.Builder
	for range 1 + random.IntN(9) {
		b.WriteString(strings.NewReplacer("@", " ", `\n`, "\n").Replace(pieces[random.IntN(len(pieces))]))
		if random.IntN(3) == 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// runTraced runs a program in an empty directory and lists what it leaves there.
func runTraced(t *testing.T, dir, binary string, args []string) []string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("x\na/b x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	_ = cmd.Run() // most are wrong programs: what they leave is what matters
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var trace []string
	for _, e := range entries {
		if e.Name() != "in" {
			trace = append(trace, e.Name())
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return trace
}
