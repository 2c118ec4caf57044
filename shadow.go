package toolward

// ShadowJudgment is what a second policy says about a call where it is not what the policy in force said: the
// difference that records keep, and that a replay of old records shows.
type ShadowJudgment struct {
	Revision string
	Change   Change
	// Partial: the policy in force hid the tool, so nobody has read the arguments. The second policy shows the tool;
	// what it would say about the arguments is not known, and there is no Verdict.
	Partial     bool
	Verdict     Verdict
	Code        Code // with Deny
	Row         string
	GrantOK     bool
	AllowAlways bool
	Findings    []Finding
	Reasons     []Reason
}

// Change is the direction in which a second policy differs.
type Change string

// The changes. Without one, verdict, code, row and the ways to answer a question are all the same.
const (
	ChangeStricter Change = "stricter"
	ChangeLooser   Change = "looser"
	ChangeOther    Change = "other" // as strict, but for another reason
)

// viaShadow marks a call that ran although people would have been asked, because the gateway only observes
// (Config.ObserveOnly).
const viaShadow = "shadow"

// Reconsider says how a policy judges a call on which another policy has decided: nil if it says the same. The
// request has no tool if the other policy hid it; judged is nil if the call was refused before it was judged. The
// request is not changed, and nothing is asked, run or granted.
func Reconsider(s Snapshot, r *Request, judged *Judgment) *ShadowJudgment {
	d := &ShadowJudgment{Revision: s.Revision()}
	tool, reason := visible(s, &r.Call)
	switch {
	case tool == nil && r.Tool == nil, tool != nil && r.Tool != nil && judged == nil:
		return nil
	case tool == nil:
		d.Code, d.Reasons = CodeUnknownTool, []Reason{reason}
	case r.Tool == nil:
		d.Partial, d.Change = true, ChangeLooser
		return d
	default:
		again := *r
		again.Tool = tool
		j := s.Judge(&again)
		d.Verdict, d.Code, d.Row, d.Findings, d.Reasons = j.Verdict, j.Code, j.Row, j.Findings, j.Reasons
		d.GrantOK, d.AllowAlways = j.GrantOK, j.AllowAlways
	}
	if judged == nil {
		judged = &Judgment{} // refused already
	}
	if d.Change = d.changeFrom(judged); d.Change == "" {
		return nil
	}
	return d
}

// changeFrom compares what decides: reasons, findings and severities explain it and may differ.
func (d *ShadowJudgment) changeFrom(j *Judgment) Change {
	switch {
	case d.Verdict != j.Verdict:
		return changeOf(d.Verdict < j.Verdict)
	case d.Verdict == Ask && d.GrantOK != j.GrantOK:
		return changeOf(j.GrantOK)
	case d.Verdict == Ask && d.AllowAlways != j.AllowAlways:
		return changeOf(j.AllowAlways)
	case d.Code != j.Code, d.Row != j.Row:
		return ChangeOther
	}
	return ""
}

func changeOf(stricter bool) Change {
	if stricter {
		return ChangeStricter
	}
	return ChangeLooser
}

// shadow has the shadow policy look at the call as the policy in force judged it last. It comes after everything that
// decides, so it can change nothing: whatever goes wrong in it is only logged.
func (a *admission) shadow() (out *ShadowJudgment) {
	if a.gateway.shadow == nil || a.request == nil && !a.hidden {
		return nil
	}
	defer a.gateway.contain("shadow policy")
	snapshot := a.gateway.shadow.Snapshot()
	switch {
	case snapshot == nil:
		return nil
	case a.hidden:
		return Reconsider(snapshot, &Request{Call: a.call}, nil)
	case a.weighed == nil:
		return Reconsider(snapshot, a.request, nil)
	}
	return Reconsider(snapshot, a.weighed, &a.policy)
}
