package mcp

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
)

// BenchmarkCallAdded prints what Toolward adds to one call of a safe tool: the same client calls the same tool once
// through this package's server and once through the bare SDK, in turns, over pipes of the same kind. The record of
// the harness is kept in memory; the daemon's benchmark has the durable one.
func BenchmarkCallAdded(b *testing.B) {
	for _, version := range versions {
		b.Run(version, func(b *testing.B) {
			with := newWorld(b).connect(b, faceStdio, version, nil)
			without := bareServer(b, version)
			guarded, bare := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
			timeCall(b, with)
			timeCall(b, without)
			for b.Loop() {
				guarded = append(guarded, timeCall(b, with))
				bare = append(bare, timeCall(b, without))
			}
			b.ReportMetric(micros(p50(guarded))-micros(p50(bare)), "added-µs-p50")
			b.ReportMetric(micros(p50(bare)), "bare-µs-p50")
			b.ReportMetric(micros(p50(guarded)), "guarded-µs-p50")
		})
	}
}

func timeCall(b *testing.B, session *sdk.ClientSession) time.Duration {
	start := time.Now()
	result, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{"text":"hello"}`)})
	took := time.Since(start)
	if err != nil || result.IsError {
		b.Fatal(result, err)
	}
	return took
}

// bareServer is the same tool behind nothing but the SDK.
func bareServer(b *testing.B, version string) *sdk.ClientSession {
	b.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "bare", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var arguments struct{ Text string }
			if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: arguments.Text}}}, nil
		})
	ours, theirs := net.Pipe()
	if _, err := server.Connect(context.Background(), &sdk.IOTransport{Reader: ours, Writer: ours}, nil); err != nil {
		b.Fatal(err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &sdk.IOTransport{Reader: theirs, Writer: theirs}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

func p50(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// BenchmarkWaitingCall is the memory and time of a call that asks and is answered at once.
func BenchmarkWaitingCall(b *testing.B) {
	w := newWorld(b)
	w.Approver.AskFunc = nil
	w.Approver.Decision = toolward.AllowOnce
	go func() {
		for range w.ran {
		}
	}()
	session := w.connect(b, faceStdio, version20251125, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := session.CallTool(context.Background(), actParams()); err != nil {
			b.Fatal(err)
		}
	}
}
