package anomaly

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/toolward/toolward"
)

// Floors raises the floors of sessions. Package session implements it.
type Floors interface {
	RaiseFloor(ctx context.Context, key toolward.SessionKey, level toolward.Level, life time.Duration, by string) error
}

// Watcher is a [Monitor] at its work: it turns reports into what the gateway does about a call. It implements
// toolward.Watcher.
type Watcher struct {
	*Monitor
	floors Floors
	tell   func(Notice)
	log    *slog.Logger
}

var _ toolward.Watcher = (*Watcher)(nil)

// Notice is a detector that fired, for the record and the operator.
type Notice struct {
	Detection
	Time    time.Time
	Session toolward.SessionKey
	Agent   string
	Tool    string // of the call that made it fire
	CallID  string
	Run     string
	Text    string // what was counted, in words
}

// NewWatcher sets a monitor to work. tell is told of every detector that fires, also when the operator is not to be
// notified; it must not block. log is optional.
func NewWatcher(m *Monitor, floors Floors, tell func(Notice), log *slog.Logger) (*Watcher, error) {
	if m == nil || floors == nil || tell == nil {
		return nil, errors.New("anomaly: a watcher needs a monitor, floors and somebody to tell")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{m, floors, tell, log}, nil
}

// Before implements toolward.Watcher.
func (w *Watcher) Before(ctx context.Context, r *toolward.Request, dry bool) toolward.Alarm {
	at := time.Now()
	if dry {
		report := w.Monitor.Preview(at, r)
		return report.alarm()
	}
	report := w.Monitor.Before(at, r)
	if report.isQuiet() {
		return toolward.Alarm{}
	}
	alarm := report.alarm()
	w.alert(at, r, &report)
	if err := w.raise(ctx, r.Call.Session, &report); err != nil {
		// Judged at the old level the call could run although the session is known to be tenser.
		alarm.Code = cmp.Or(alarm.Code, toolward.CodeAnomaly)
		alarm.Reasons = append(alarm.Reasons, toolward.Reason{
			Layer: "anomaly", Rule: "teg.anomaly." + report.FloorBy.String(), Text: "the session's level could not be raised: " + err.Error(),
		})
	}
	return alarm
}

// Refused implements toolward.Watcher. A refusal for want of a record or of a sandbox says something about this
// machine, not about the session, and is not counted: a full disk shall not put everybody in lockdown.
func (w *Watcher) Refused(ctx context.Context, r *toolward.Request, code toolward.Code) {
	at := time.Now()
	var report Report
	switch code {
	case toolward.CodeAuditUnavailable, toolward.CodeNoSandbox, toolward.CodeNotKept:
		return
	case toolward.CodeInvalidArgs:
		report = w.Monitor.Invalid(at, r)
	default:
		report = w.Monitor.Denied(at, r, code)
	}
	if report.isQuiet() {
		return
	}
	w.alert(at, r, &report)
	if err := w.raise(ctx, r.Call.Session, &report); err != nil {
		// The call is refused anyway. The tracker keeps a floor in force that it cannot keep on disk, and calls of a
		// session that it cannot load are refused before they come here.
		w.log.Error("a session's level could not be raised", "session", r.Call.Session, "err", err)
	}
}

// After implements toolward.Watcher.
func (w *Watcher) After(_ context.Context, r *toolward.Request, outcome *toolward.OutcomeRecord, result *toolward.Result) {
	o := Outcome{Error: outcome.Error, Digest: outcome.ResultDigest}
	if _, action := pollOf(r); action != "" && result != nil {
		// Of a poll only some parts count: the time that has passed is no news.
		o.Details = result.Structured
		for _, c := range result.Content {
			o.Text += c.Text
		}
	}
	w.Monitor.ended(time.Now(), r, outcome.Status, o)
}

// ended observes an end with the status that the record has.
func (m *Monitor) ended(at time.Time, r *toolward.Request, status toolward.Status, o Outcome) {
	switch status {
	case toolward.StatusOK:
		o.Error = "" // what could not be recorded is no part of how the call ended
	case toolward.StatusError, toolward.StatusAborted:
		o.Error = cmp.Or(o.Error, string(status))
	default:
		return // nobody knows how it ended, or it never began
	}
	m.After(at, r, &o)
}

// isQuiet reports that nothing follows.
func (r *Report) isQuiet() bool {
	return len(r.Fired) == 0 && len(r.Ask) == 0 && r.Floor == toolward.Normal && !r.Block && !r.Abort
}

// alarm is what the gateway does about the call.
func (r *Report) alarm() (a toolward.Alarm) {
	for _, d := range r.Ask {
		a.Reasons = append(a.Reasons, reasonOf(d))
	}
	a.Ask = len(r.Ask) > 0
	if r.Floor != toolward.Normal {
		a.Raised, a.Level = true, r.Floor
	}
	switch {
	case r.Stuck.Critical:
		a.Code = toolward.CodeLoop
		a.Reasons = append(a.Reasons, toolward.Reason{
			Layer: "anomaly", Rule: "tools.loopDetection", Matched: r.Stuck.Detector, Text: loops[r.Stuck.Detector],
		})
	case r.Ended:
		a.Code = toolward.CodeAnomaly
		a.Reasons = append(a.Reasons, toolward.Reason{Layer: "anomaly", Text: "an alarm has ended this run"})
	case r.Block || r.Abort:
		a.Code = toolward.CodeAnomaly
		for _, d := range r.Blocking {
			a.Reasons = append(a.Reasons, reasonOf(d))
		}
	}
	return a
}

func (w *Watcher) raise(ctx context.Context, key toolward.SessionKey, r *Report) error {
	if r.Floor == toolward.Normal {
		return nil
	}
	return w.floors.RaiseFloor(ctx, key, r.Floor, r.FloorFor, alarms[r.FloorBy])
}

// alarms name who raised a floor; made once, because a tense session asks for its floor with every call.
var alarms = func() (names [detectors]string) {
	for d := range Detector(detectors) {
		names[d] = "alarm: " + d.String()
	}
	return names
}()

// alert tells what fired.
func (w *Watcher) alert(at time.Time, r *toolward.Request, report *Report) {
	if len(report.Fired) == 0 {
		return
	}
	rules := &w.settings.Load().rules
	for _, d := range report.Fired {
		w.tell(Notice{
			Detection: d, Time: at, Session: r.Call.Session, Agent: r.Call.Caller.Agent, Tool: toolOf(r),
			CallID: r.Call.ID, Run: r.Call.Run, Text: d.text(rules[d.Detector].window),
		})
	}
}
