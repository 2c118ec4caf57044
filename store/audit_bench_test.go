package store

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/redact"
)

// openLog opens a real log in a fresh home.
func openLog(t testing.TB, opts audit.Options) (*audit.Log, *DB) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	db, err := Open(t.Context(), home, Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := startLog(t, db, opts)
	t.Cleanup(func() {
		log.Close()
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return log, db
}

func startLog(t testing.TB, db *DB, opts audit.Options) *audit.Log {
	t.Helper()
	key, first, err := audit.LoadKey(db.Home())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Audit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	opts.Key, opts.First, opts.Redact, opts.Escape = key, first, redact.Text, display.Block
	log, err := audit.Open(context.Background(), rows, opts)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// typical is the decision about an ordinary write.
func typical(verdict toolward.Verdict) *toolward.DecisionRecord {
	arguments := `{"content":"` + strings.Repeat("package main\\n", 10) + `","path":"src/server/handlers/list.go"}`
	return &toolward.DecisionRecord{
		Time: time.Now(), Tool: "write",
		Call: toolward.Call{
			ID: "toolu_01AbCdEf", Run: "run-7", Tool: "write", NativeName: "Write", Session: "agent:coder:mcp:laptop:2f1c",
			Surface: toolward.SurfaceMCP, WorkDir: "/home/ada/project", Host: toolward.HostGateway,
			Caller: toolward.Caller{Agent: "coder", Context: "main", Client: "claude-code 2.1"},
		},
		Digest: strings.Repeat("ab", 32),
		Params: toolward.NewParams([]byte(arguments), nil),
		Facts: toolward.Facts{Mutates: true, Targets: []toolward.Target{{
			Path: "src/server/handlers/list.go", Real: "/home/ada/project/src/server/handlers/list.go",
			Op: toolward.OpWrite, Zone: "workspace", Kind: "file", Links: 1,
		}}},
		Judgment: toolward.Judgment{
			Verdict: toolward.Allow, Row: "write workspace",
			Class:   toolward.Classification{Class: toolward.Safe, From: toolward.Elevated, Severity: toolward.Info},
			Reasons: []toolward.Reason{{Layer: "teg.preset", Rule: "workspace", Text: "writes inside the workspace run at level normal"}},
		},
		First: toolward.Allow, Verdict: verdict, Level: toolward.Normal, Via: "class", Revision: "7",
		Inputs: toolward.LevelInputs{ContextTokens: 41200, ContextWindow: 200000, Floor: toolward.Normal},
	}
}

// BenchmarkDurableDecisions compares durable decisions of 64 callers with the
// least that any group commit could do: the same callers, rows of the same
// size, one transaction and one fsync for all who wait, nothing else. Both run
// in turns, so that whatever else the machine does hits both.
func BenchmarkDurableDecisions(b *testing.B) {
	bare := bareInserts(b)
	log, db := openLog(b, audit.Options{})
	d := typical(toolward.Allow)
	ids := make(chan toolward.RecordID, benchCallers*benchShare)
	decide := func() {
		id, err := log.Decide(context.Background(), d)
		if err != nil {
			b.Error(err)
		}
		ids <- id
	}
	conclude := func() {
		if err := log.Conclude(context.Background(), <-ids, &toolward.OutcomeRecord{Status: toolward.StatusOK}); err != nil {
			b.Error(err)
		}
	}
	concludeAll := func() { // not measured, and over before the next is
		crowd(conclude)
		for open := 1; open > 0; time.Sleep(time.Millisecond) {
			row := db.Reader().QueryRow(`SELECT (SELECT count(*) FROM audit WHERE type = 'decision') - count(*) FROM audit WHERE type = 'outcome'`)
			if err := row.Scan(&open); err != nil {
				b.Fatal(err)
			}
		}
	}
	// The first round grows both logs on the disk, which happens once.
	crowd(bare)
	crowd(decide)
	concludeAll()
	var bareTime, ourTime time.Duration
	rounds := 0
	for b.Loop() {
		for range 5 { // long enough for both to move their logs into the main files
			bareTime += crowd(bare)
			ourTime += crowd(decide)
			concludeAll()
			rounds++
		}
	}
	calls := float64(rounds * benchCallers * benchShare)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(calls/ourTime.Seconds(), "durable/s")
	b.ReportMetric(calls/bareTime.Seconds(), "bare/s")
	b.ReportMetric(bareTime.Seconds()/ourTime.Seconds(), "of_bare")
}

const (
	benchCallers = 64
	benchShare   = 250 // calls of each caller in one round
)

// crowd is how long all callers together take for their calls.
func crowd(one func()) time.Duration {
	var wg sync.WaitGroup
	start := time.Now()
	for range benchCallers {
		wg.Go(func() {
			for range benchShare {
				one()
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkOneCall is what recording adds to one call that nobody else
// competes with: its decision and its outcome.
func BenchmarkOneCall(b *testing.B) {
	plain, durable := typical(toolward.Allow), typical(toolward.Allow)
	plain.Facts.Mutates = false
	for _, bench := range []struct {
		name string
		d    *toolward.DecisionRecord
	}{{"safe", plain}, {"durable", durable}} {
		b.Run(bench.name, func(b *testing.B) {
			log, _ := openLog(b, audit.Options{})
			for b.Loop() {
				decide(b, log, bench.d, toolward.StatusOK)
			}
		})
	}
}

// bareInserts is a group commit without anything else: SQLite syncs at each
// commit.
func bareInserts(b *testing.B) func() {
	path := filepath.Join(b.TempDir(), "bare.db")
	db, err := sql.Open("sqlite", dsn(path, map[string]string{
		"page_size": strconv.Itoa(pageSize), "synchronous": "FULL",
		"wal_autocheckpoint": strconv.Itoa(checkpointPages), "cache_size": "-2048",
	})+"&_journal_mode=WAL&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE bare (seq INTEGER PRIMARY KEY, record TEXT)`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(`INSERT INTO bare (record) VALUES (?)`)
	if err != nil {
		b.Fatal(err)
	}
	record := strings.Repeat("x", rowSize(b))
	queue := make(chan chan error, 1024)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for first := range queue {
			batch := []chan error{first}
		gather:
			for len(batch) < 256 {
				select {
				case next := <-queue:
					batch = append(batch, next)
				default:
					break gather
				}
			}
			err := bareCommit(db, insert, record, len(batch))
			for _, done := range batch {
				done <- err
			}
		}
	}()
	b.Cleanup(func() {
		close(queue)
		<-ended
		db.Close()
	})
	pool := sync.Pool{New: func() any { return make(chan error, 1) }}
	return func() {
		done := pool.Get().(chan error)
		queue <- done
		if err := <-done; err != nil {
			b.Error(err)
		}
		pool.Put(done)
	}
}

func bareCommit(db *sql.DB, insert *sql.Stmt, record string, rows int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmt := tx.Stmt(insert)
	for range rows {
		if _, err := stmt.Exec(record); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// rowSize is how many bytes a decision keeps in all columns.
func rowSize(b *testing.B) (size int) {
	log, db := openLog(b, audit.Options{})
	if _, err := log.Decide(context.Background(), typical(toolward.Allow)); err != nil {
		b.Fatal(err)
	}
	row := db.Reader().QueryRow(`SELECT length(record) + length(hash) + length(session) + length(agent) +
		length(tool) + length(verdict) + length(type) + 8 FROM audit WHERE type = 'decision'`)
	if err := row.Scan(&size); err != nil {
		b.Fatal(err)
	}
	return size
}
