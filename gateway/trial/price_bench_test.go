package trial

import (
	"path/filepath"
	"strconv"
	"testing"
)

// everydayCalls are calls as sessions make them, of which each is another.
func everydayCalls(w *priceWorld, n int) {
	file := func(i int) string { return filepath.Join(w.work, "internal", "file"+strconv.Itoa(i)+".go") }
	for i := range n {
		name := file(i)
		switch i % 10 {
		case 0:
			w.call("Read", object{"file_path": name, "limit": 200})
		case 1:
			w.call("Edit", object{"file_path": name, "old_string": "a" + strconv.Itoa(i), "new_string": "b"})
		case 2:
			w.call("Grep", object{"pattern": "func " + strconv.Itoa(i), "path": w.work})
		case 3:
			w.run("grep -rn 'case " + strconv.Itoa(i) + "' --include=*.go . | head -20")
		case 4:
			w.run("go test ./... -run Test" + strconv.Itoa(i) + " 2>&1 | tail -30")
		case 5:
			w.run("git status --short && git diff --stat HEAD~" + strconv.Itoa(i))
		case 6:
			w.run("sed -n '" + strconv.Itoa(i) + ",+20p' " + name)
		case 7:
			w.run("cd internal && ls -la file" + strconv.Itoa(i) + ".go")
		case 8:
			w.run("for f in *.go; do echo $f " + strconv.Itoa(i) + "; done")
		default:
			w.run("rm -rf build" + strconv.Itoa(i) + " && mkdir -p build")
		}
	}
}

// BenchmarkReport judges 10,000 calls of past sessions.
func BenchmarkReport(b *testing.B) {
	const calls = 10_000
	w := newPriceWorld(b)
	everydayCalls(w, calls)
	for b.Loop() {
		if got := w.price(developer); got.Calls != calls {
			b.Fatalf("%d calls", got.Calls)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(calls*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
