package gateway

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// BenchmarkIdleDaemon is the memory that the real gateway takes for itself: after its start, with a person signed in;
// at work, after some thousand calls; and idle again.
func BenchmarkIdleDaemon(b *testing.B) {
	for b.Loop() {
		d := startDaemon(b)
		d.waitIdle(b)
		b.ReportMetric(d.anonymousMB(b), "MB-idle")
		session := connect(b, "", d.stream(b))
		for range 3000 {
			readOnce(b, session, filepath.Join(d.workspace, "src", "server", "handlers", "list.go"))
		}
		b.ReportMetric(d.anonymousMB(b), "MB-at-work")
		time.Sleep(2*lookEvery + time.Second) // the gateway takes a while to be sure
		d.waitIdle(b)
		b.ReportMetric(d.anonymousMB(b), "MB-idle-again")
	}
	b.ReportMetric(0, "ns/op")
}

// anonymousMB is the memory of the process that is no file's, in megabytes.
func (d *runningDaemon) anonymousMB(b *testing.B) float64 {
	b.Helper()
	status := d.proc(b, "status")
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	var kib float64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		b.Fatalf("%v in %s", err, status)
	}
	return kib * 1024 / 1e6
}

// waitIdle returns when the process has not run for a second.
func (d *runningDaemon) waitIdle(b *testing.B) {
	b.Helper()
	const still = 10
	last, same := []byte(nil), 0
	for range 600 {
		// Ticks of the processor in user and in system mode are the 12th and 13th field behind the name.
		stat := d.proc(b, "stat")
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		now := bytes.Join(fields[11:13], []byte(" "))
		if same++; !bytes.Equal(now, last) {
			last, same = now, 0
		}
		if same == still {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatal("the gateway does not become idle within a minute")
}

func (d *runningDaemon) proc(b *testing.B, name string) []byte {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(d.process.Pid), name))
	if err != nil {
		b.Fatal(err)
	}
	return text
}
