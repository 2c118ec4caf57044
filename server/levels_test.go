package server_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/internal/consoletest"
	"github.com/toolward/toolward/server/api"
)

// person is a signed-in person's way to the API of a new world.
func person(t *testing.T) (*consoletest.World, *apiClient) {
	t.Helper()
	w := consoletest.New(t, consoletest.Options{})
	wire := &apiClient{t: t, http: w.SocketClient(), base: "http://toolward"}
	wire.want(200, "POST", "/v1/login", api.Passphrase{Passphrase: consoletest.Passphrase}, nil)
	return w, wire
}

func TestSessionsThroughTheAPI(t *testing.T) {
	w, wire := person(t)
	<-w.Call("coder", "read", map[string]any{"path": "a.go"})
	<-w.Call("writer", "read", map[string]any{"path": "b.go"})
	must(t, w.Levels.Expose(t.Context(), "agent:quiet:main", toolward.Exposure{External: []string{"mail", "web"}}))
	must(t, w.Levels.RaiseFloor(t.Context(), "agent:quiet:main", toolward.Elevated, time.Hour, "alarm: denied"))
	_, err := w.Audit.Append(t.Context(), audit.Event{
		Type: audit.TypeAnomaly, Session: "agent:quiet:main", Agent: "quiet", Tool: "exec", CallID: "c7", Data: map[string]any{
			"detector": "denied", "count": 3, "action": "elevate", "text": "3 refusals within 5 minutes", "notified": true, "run": "r1",
		},
	})
	must(t, err)

	var list api.Sessions
	wire.want(200, "GET", "/v1/sessions", nil, &list)
	at := slices.IndexFunc(list.Sessions, func(s desk.Session) bool { return s.Agent == "quiet" })
	if len(list.Sessions) != 3 || at < 0 {
		t.Fatalf("sessions: %+v", list.Sessions)
	}
	quiet := list.Sessions[at]
	if quiet.Level != toolward.Elevated || quiet.Inputs.Floor != toolward.Elevated || quiet.FloorBy != "alarm: denied" ||
		time.Until(quiet.FloorUntil) < 50*time.Minute || quiet.Sources != 2 || quiet.LastCall != nil || quiet.Anomalies != 1 {
		t.Errorf("the quiet one: %+v", quiet)
	}
	for i, s := range list.Sessions {
		if i != at && (s.LastCall == nil || s.LastCall.Tool != "read" || s.LastCall.Verdict != "allow" || s.Level != toolward.Normal) {
			t.Errorf("a caller: %+v", s)
		}
	}
	wire.want(200, "GET", "/v1/sessions?limit=2", nil, &list)
	if len(list.Sessions) != 2 {
		t.Errorf("with a limit: %+v", list.Sessions)
	}
	wire.want(400, "GET", "/v1/sessions?limit=0", nil, nil)
	wire.want(400, "GET", "/v1/sessions?session=x", nil, nil)

	var anomalies api.Anomalies
	wire.want(200, "GET", "/v1/anomalies?session=agent:quiet:main", nil, &anomalies)
	if len(anomalies.Anomalies) != 1 {
		t.Fatalf("anomalies: %+v", anomalies)
	}
	got := anomalies.Anomalies[0]
	want := desk.Anomaly{
		Seq: got.Seq, At: got.At, Session: "agent:quiet:main", Agent: "quiet", Tool: "exec", CallID: "c7", Run: "r1",
		Detector: "denied", Count: 3, Action: "elevate", Text: "3 refusals within 5 minutes", Notified: true,
	}
	if got != want || got.Seq == 0 || time.Since(got.At) > time.Minute {
		t.Errorf("%+v, want %+v", got, want)
	}
	wire.want(200, "GET", "/v1/anomalies?session=agent:other:main", nil, &anomalies)
	if len(anomalies.Anomalies) != 0 {
		t.Errorf("of another session: %+v", anomalies)
	}
	wire.want(400, "GET", "/v1/anomalies?colour=red", nil, nil)
}

// Whoever clears what a session has seen has read exactly that, and the record says so.
func TestClearingALevelThroughTheAPI(t *testing.T) {
	w, wire := person(t)
	const path = "/v1/level?session=agent:coder:main"
	must(t, w.Levels.Expose(t.Context(), "agent:coder:main", toolward.Exposure{External: []string{"https://a.example"}}))
	var read, after api.Level
	wire.want(200, "GET", path, nil, &read)
	must(t, w.Levels.Expose(t.Context(), "agent:coder:main", toolward.Exposure{External: []string{"https://b.example"}}))
	wire.want(409, "DELETE", path+"&external="+url.QueryEscape(read.Stamp), nil, nil)
	wire.want(200, "POST", path, api.LevelFloor{Level: "lockdown"}, nil)
	wire.want(200, "DELETE", path, nil, &after)
	if !after.Inputs.External || len(after.Sources) != 2 || after.Level != toolward.Normal {
		t.Errorf("clearing the floor: %+v", after)
	}
	wire.want(200, "DELETE", path+"&external="+url.QueryEscape(after.Stamp), nil, &after)
	if after.Inputs.External || len(after.Sources) != 0 {
		t.Errorf("clearing the mark: %+v", after)
	}
	records, err := w.Audit.Query(t.Context(), audit.Filter{Type: audit.TypeLevel, Session: "agent:coder:main"})
	must(t, err)
	if len(records) != 3 || !strings.Contains(records[0].JSON, `"event":"cleared","external":true,"sources":["https://a.example","https://b.example"]`) ||
		!strings.Contains(records[2].JSON, `"event":"floor set","to":"lockdown"`) {
		t.Errorf("the record: %+v", records)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
