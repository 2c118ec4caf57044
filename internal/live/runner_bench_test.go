package live_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// runnerDesk is a [ticketDesk] of a benchmark.
type runnerDesk struct {
	*ticketDesk
	b *testing.B
}

func newRunnerDesk(b *testing.B) *runnerDesk {
	b.Helper()
	return &runnerDesk{newTicketDesk(b, confinedAgent), b}
}

// ticketed has a command decided, and is the program that the client is told to run in its place.
func (m *runnerDesk) ticketed(text string) *exec.Cmd {
	m.b.Helper()
	words := strings.Fields(strings.ReplaceAll(m.told(text), "'", ""))
	c := exec.Command(words[0], words[1:]...)
	c.Dir, c.Env = m.Workspace, m.Environment()
	return c
}

// BenchmarkRunner runs toolward-run as a client's shell does, in a sandbox that runs already, and beside it an empty Go program:
// from the start of the process to its end, in turn, in one run. "text" is a command that a shell inside runs.
func BenchmarkRunner(b *testing.B) {
	m := newRunnerDesk(b)
	empty := buildEmpty(b)
	timed(b, m.ticketed("true"))
	var alone, one, text []time.Duration
	for b.Loop() {
		one = append(one, timed(b, m.ticketed("true")))
		alone = append(alone, timed(b, exec.Command(empty)))
		text = append(text, timed(b, m.ticketed("true && true")))
	}
	empties, ones, texts := median(alone), median(one), median(text)
	b.ReportMetric(float64(empties.Microseconds()), "µs/empty")
	b.ReportMetric(float64(ones.Microseconds()), "µs/run")
	b.ReportMetric(float64(ones)/float64(empties), "x-empty")
	b.ReportMetric(float64(texts)/float64(empties), "x-empty-text")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRunnerOutput is what comes through toolward-run into a pipe, beside the same program on the machine.
func BenchmarkRunnerOutput(b *testing.B) {
	const size = 512 << 20
	m := newRunnerDesk(b)
	through := func(c *exec.Cmd) time.Duration {
		b.Helper()
		out, err := c.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		n := 0
		buf := make([]byte, 1<<20)
		for {
			got, err := out.Read(buf)
			n += got
			if err != nil {
				break
			}
		}
		if err := c.Wait(); err != nil || n != size {
			b.Fatalf("%d bytes, %v", n, err)
		}
		return time.Since(start)
	}
	var direct, run []time.Duration
	for b.Loop() {
		run = append(run, through(m.ticketed("head -c 536870912 /dev/zero")))
		direct = append(direct, through(exec.Command("head", "-c", "536870912", "/dev/zero")))
	}
	b.ReportMetric(size/1e6/median(run).Seconds(), "MB/s")
	b.ReportMetric(float64(median(run))/float64(median(direct)), "x-direct")
	b.ReportMetric(0, "ns/op")
}
