package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// reply is what a call in the background came to.
type reply struct {
	result *sdk.CallToolResult
	err    error
}

func callInBackground(ctx context.Context, session *sdk.ClientSession, params *sdk.CallToolParams) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		result, err := session.CallTool(ctx, params)
		done <- reply{result, err}
	}()
	return done
}

func actParams() *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: "act", Arguments: json.RawMessage(`{"n":1}`)}
}

// urlClient can show links; answer is what its user does with one.
func urlClient(answer func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)) *sdk.ClientOptions {
	return &sdk.ClientOptions{
		ElicitationHandler: answer,
		Capabilities:       &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
	}
}

func (w *world) ranOnce(t testing.TB) {
	t.Helper()
	if n := len(w.ran); n != 1 {
		t.Errorf("the call ran %d times, want once", n)
	}
}

func (w *world) neverRan(t testing.TB) {
	t.Helper()
	if n := len(w.ran); n != 0 {
		t.Errorf("the call ran %d times, want never", n)
	}
}

func TestWaitingCallIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name     string
		decision toolward.Decision
	}{{"allowed", toolward.AllowOnce}, {"denied", toolward.DenyCall}, {"no decision", toolward.NoDecision}} {
		t.Run(c.name, func(t *testing.T) {
			everyFace(t, func(t *testing.T, face, version string) {
				w := newWorld(t)
				session := w.connect(t, face, version, nil)
				done := callInBackground(context.Background(), session, actParams())
				w.people.decide(t, "a1", c.decision)
				got := <-done
				if got.err != nil {
					t.Fatal(got.err)
				}
				switch c.decision {
				case toolward.AllowOnce:
					if text(t, got.result) != "done" || got.result.IsError {
						t.Errorf("got %+v", got.result)
					}
					w.ranOnce(t)
				case toolward.DenyCall:
					checkDenied(t, got.result, toolward.CodeDeniedByUser, toolward.RetryNever)
					w.neverRan(t)
				default:
					checkDenied(t, got.result, toolward.CodeApprovalTimeout, toolward.RetryLater)
					w.neverRan(t)
				}
			})
		})
	}
}

func TestProgressWhileWaiting(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t)
		told := make(chan *sdk.ProgressNotificationParams, 16)
		session := w.connect(t, face, version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params },
		})
		params := actParams()
		params.Meta = sdk.Meta{}
		params.SetProgressToken("p1")
		done := callInBackground(context.Background(), session, params)
		progress := <-told
		if progress.ProgressToken != "p1" || progress.Progress != 1 {
			t.Errorf("progress %+v", progress)
		}
		if want := "http://127.0.0.1:7411/approvals/a1"; !strings.Contains(progress.Message, "approval a1") || !strings.Contains(progress.Message, want) {
			t.Errorf("message %q does not name the approval and its page", progress.Message)
		}
		w.people.decide(t, "a1", toolward.AllowOnce)
		if got := <-done; got.err != nil || got.result.IsError {
			t.Errorf("got %+v", got)
		}
		w.ranOnce(t)
	})
}

func TestCancelWithdraws(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		for _, withProgress := range []bool{false, true} {
			w := newWorld(t)
			session := w.connect(t, face, version, nil)
			params := actParams()
			if withProgress {
				params.Meta = sdk.Meta{}
				params.SetProgressToken(1)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := callInBackground(ctx, session, params)
			w.people.until(t, "a1", func(*entry) bool { return true })
			cancel()
			if got := <-done; !errors.Is(got.err, context.Canceled) {
				t.Errorf("got %+v", got)
			}
			if why := w.people.withdrawn(t, "a1"); !errors.Is(why, approval.ErrCanceled) && face == faceStdio {
				t.Errorf("withdrawn because %v, want the client's word", why) // over HTTP the SDK's client hangs up first
			}
			w.neverRan(t)
		}
	})
}

func TestCancelNotificationOverHTTP(t *testing.T) {
	for _, version := range []string{version20250618, version20251125} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			post := newPoster(t, w.http(t).URL, version)
			done := make(chan struct{})
			go func() {
				defer close(done)
				post.try(context.Background(), "act", `{}`)
			}()
			w.people.until(t, "a1", func(*entry) bool { return true })
			a := post.post(context.Background(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, nil)
			if a == nil || a.status != http.StatusAccepted {
				t.Errorf("notification: %+v", a)
			}
			if why := w.people.withdrawn(t, "a1"); !errors.Is(why, approval.ErrCanceled) {
				t.Errorf("withdrawn because %v, want the client's word", why)
			}
			<-done
			w.neverRan(t)
		})
	}
}

func TestVanishedClientWithdraws(t *testing.T) {
	t.Run("stdio", func(t *testing.T) {
		w := newWorld(t)
		raw := newRaw(t, w.stdio(t, coder))
		raw.initialize(version20251125)
		raw.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{}}}`)
		w.people.until(t, "a1", func(*entry) bool { return true })
		raw.conn.Close()
		if why := w.people.withdrawn(t, "a1"); errors.Is(why, approval.ErrCanceled) {
			t.Errorf("withdrawn because %v: the client said nothing", why)
		}
		w.neverRan(t)
	})
	for _, version := range versions {
		t.Run("http "+version, func(t *testing.T) {
			w := newWorld(t)
			post := newPoster(t, w.http(t).URL, version)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				post.try(ctx, "act", `{}`)
			}()
			w.people.until(t, "a1", func(*entry) bool { return true })
			cancel() // closes the TCP connection; no notifications/canceled is sent
			<-done
			w.people.withdrawn(t, "a1")
			w.neverRan(t)
		})
	}
}

func TestLinkIsShown(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t)
		shown := make(chan *sdk.ElicitParams, 4)
		session := w.connect(t, face, version, urlClient(func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			shown <- r.Params
			return &sdk.ElicitResult{Action: "accept"}, nil
		}))
		done := callInBackground(context.Background(), session, actParams())
		link := <-shown
		if link.Mode != "url" || link.URL != "http://127.0.0.1:7411/approvals/a1" || link.RequestedSchema != nil {
			t.Errorf("elicitation %+v", link)
		}
		if version < version20260728 && link.ElicitationID != "a1" {
			t.Errorf("elicitation id %q", link.ElicitationID)
		}
		// The user "accepts" the link at once. That must not be an answer: the call has to wait.
		w.people.until(t, "a1", func(e *entry) bool { return e.waiting })
		w.neverRan(t)
		w.people.decide(t, "a1", toolward.AllowOnce)
		if got := <-done; got.err != nil || got.result.IsError {
			t.Errorf("got %+v", got)
		}
		w.ranOnce(t)
		if len(shown) != 0 {
			t.Error("the link was shown twice")
		}
	})
}

func TestLinkDeclinedByPersonWithdraws(t *testing.T) {
	everyVersion(t, func(t *testing.T, version string) {
		w := newWorld(t)
		session := w.connect(t, faceStdio, version, urlClient(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			time.Sleep(humanTime) // a person reads first
			return &sdk.ElicitResult{Action: "decline"}, nil
		}))
		result, err := session.CallTool(context.Background(), actParams())
		if err != nil {
			t.Fatal(err)
		}
		checkDenied(t, result, toolward.CodeDeniedByUser, toolward.RetryNever)
		if why := w.people.withdrawn(t, "a1"); !errors.Is(why, approval.ErrCanceled) {
			t.Errorf("withdrawn because %v", why)
		}
		w.neverRan(t)
	})
}

func TestUnansweredCallExpires(t *testing.T) {
	everyVersion(t, func(t *testing.T, version string) {
		w := newWorld(t)
		session := w.connect(t, faceStdio, version, urlClient(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept"}, nil
		}))
		start := time.Now()
		result, err := session.CallTool(context.Background(), actParams())
		if err != nil {
			t.Fatal(err)
		}
		checkDenied(t, result, toolward.CodeApprovalTimeout, toolward.RetryLater)
		if took := time.Since(start); took != w.people.life {
			t.Errorf("refused after %v, want the approval's whole life of %v", took, w.people.life)
		}
		w.neverRan(t)
	})
}

func TestProgressIsRepeated(t *testing.T) {
	everyVersion(t, func(t *testing.T, version string) {
		w := newWorld(t)
		told := make(chan float64, 100)
		session := w.connect(t, faceStdio, version, &sdk.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { told <- r.Params.Progress },
		})
		params := actParams()
		params.Meta = sdk.Meta{}
		params.SetProgressToken("p1")
		done := callInBackground(context.Background(), session, params)
		time.Sleep(3*progressEvery + time.Second)
		w.people.decide(t, "a1", toolward.AllowOnce)
		if got := <-done; got.err != nil || got.result.IsError {
			t.Errorf("got %+v", got)
		}
		time.Sleep(10 * progressEvery) // nothing may follow the result
		close(told)
		var steps []float64
		for step := range told {
			steps = append(steps, step)
		}
		if diff := cmp.Diff([]float64{1, 2, 3, 4}, steps); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	})
}

// Clients without a person answer every elicitation at once; a person can still answer in the console.
func TestLinkRefusedByMachineKeepsWaiting(t *testing.T) {
	for _, action := range []string{"decline", "cancel", "nonsense"} {
		t.Run(action, func(t *testing.T) {
			everyFace(t, func(t *testing.T, face, version string) {
				w := newWorld(t)
				session := w.connect(t, face, version, urlClient(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: action}, nil
				}))
				done := callInBackground(context.Background(), session, actParams())
				w.people.until(t, "a1", func(e *entry) bool { return e.waiting })
				w.people.decide(t, "a1", toolward.AllowOnce)
				if got := <-done; got.err != nil || got.result.IsError {
					t.Errorf("got %+v", got)
				}
				w.ranOnce(t)
			})
		})
	}
}

func TestElicitationEndsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		completed := make(chan string, 1)
		options := urlClient(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept"}, nil
		})
		options.ElicitationCompleteHandler = func(_ context.Context, r *sdk.ElicitationCompleteNotificationRequest) {
			completed <- r.Params.ElicitationID
		}
		session := w.connect(t, faceStdio, version20251125, options)
		done := callInBackground(context.Background(), session, actParams())
		synctest.Wait() // the client has "accepted" the link
		w.people.decide(t, "a1", toolward.AllowOnce)
		if got := <-done; got.err != nil {
			t.Fatal(got.err)
		}
		if id := <-completed; id != "a1" {
			t.Errorf("completed %q", id)
		}
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	everyFace(t, func(t *testing.T, face, version string) {
		w := newWorld(t, func(c *Config) { c.MaxCalls = 4 })
		session := w.connect(t, face, version, nil)
		var waiting []<-chan reply
		for range 4 {
			waiting = append(waiting, callInBackground(context.Background(), session, actParams()))
		}
		for _, id := range []string{"a1", "a2", "a3", "a4"} {
			w.people.until(t, id, func(*entry) bool { return true })
		}
		_, err := session.CallTool(context.Background(), actParams())
		if err == nil || !strings.Contains(err.Error(), "in flight") {
			t.Errorf("a fifth call: %v, want the limit", err)
		}
		var wg sync.WaitGroup
		for _, id := range []string{"a1", "a2", "a3", "a4"} {
			wg.Go(func() { w.people.decide(t, id, toolward.AllowOnce) })
		}
		wg.Wait()
		for _, done := range waiting {
			if got := <-done; got.err != nil || got.result.IsError {
				t.Errorf("got %+v", got)
			}
		}
		if n := len(w.ran); n != 4 {
			t.Errorf("%d calls ran, want 4", n)
		}
		if _, err := session.CallTool(context.Background(), &sdk.CallToolParams{Name: "echo", Arguments: json.RawMessage(`{}`)}); err != nil {
			t.Errorf("after the calls have ended: %v", err)
		}
	})
}

// A call that a client hears progress of, or a link, is put to the gateway once: decoded once, and its facts found once for the
// decision and once more by the re-check after the wait, which must not rely on what was there before it.
func TestWaitingCallIsAnalyzedOnce(t *testing.T) {
	for name, options := range map[string]*sdk.ClientOptions{
		"progress": nil,
		"link": urlClient(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept"}, nil
		}),
	} {
		for _, version := range []string{version20250618, version20251125} {
			t.Run(name+" "+version, func(t *testing.T) {
				w := newWorld(t)
				var looks, decodes atomic.Int32
				act := w.Policy.All[1]
				act.Facts = func(context.Context, *toolward.Request) (toolward.Facts, error) {
					looks.Add(1)
					return toolward.Facts{}, nil
				}
				act.Decode = func(raw json.RawMessage) (toolward.Params, error) {
					decodes.Add(1)
					return toolward.NewParams(raw, map[string]any{"n": json.Number("1")}), nil
				}
				session := w.connect(t, faceStdio, version, options)
				params := actParams()
				params.Meta = sdk.Meta{}
				params.SetProgressToken("p1")
				done := callInBackground(context.Background(), session, params)
				w.people.until(t, "a1", func(e *entry) bool { return e.waiting })
				if looks.Load() != 1 || decodes.Load() != 1 {
					t.Errorf("before the answer: facts found %d times, arguments decoded %d times, want once", looks.Load(), decodes.Load())
				}
				w.people.decide(t, "a1", toolward.AllowOnce)
				if got := <-done; got.err != nil || got.result.IsError {
					t.Fatalf("got %+v", got)
				}
				if looks.Load() != 2 || decodes.Load() != 1 {
					t.Errorf("in all: facts found %d times, want 2; arguments decoded %d times, want 1", looks.Load(), decodes.Load())
				}
			})
		}
	}
}
