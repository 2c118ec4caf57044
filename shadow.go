package toolward

// ShadowJudgement is what a second policy, evaluated beside the one in force, would have said about a call.
type ShadowJudgement struct {
	Revision string
	Verdict  Verdict
	Code     Code // with Deny
	Row      string
	Findings []Finding
	Reasons  []Reason
}

// viaShadow marks a call that ran although people would have been asked, because the gateway only observes
// (Config.ObserveOnly).
const viaShadow = "shadow"

// shadow evaluates the shadow policy on the call as the policy in force judged it first. It returns nil if there is
// no shadow policy or if it says the same. It can change nothing: whatever goes wrong in it is only logged.
func (a *admission) shadow() (out *ShadowJudgement) {
	if a.gateway.shadow == nil || a.policy.Row == "" || a.dry {
		return nil
	}
	defer a.gateway.contain("shadow policy")
	snapshot := a.gateway.shadow.Snapshot()
	if snapshot == nil {
		return nil
	}
	s := &ShadowJudgement{Revision: snapshot.Revision()}
	r := *a.request
	tool, reason := visible(snapshot, &a.call)
	if tool == nil {
		s.Verdict, s.Code, s.Reasons = Deny, CodeUnknownTool, []Reason{reason}
	} else {
		r.Tool = tool
		j := snapshot.Judge(&r)
		s.Verdict, s.Code, s.Row, s.Findings, s.Reasons = j.Verdict, j.Code, j.Row, j.Findings, j.Reasons
	}
	if s.Verdict == a.policy.Verdict {
		return nil
	}
	return s
}
