package protocol

import (
	"time"

	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/identity"
)

// ApprovalNews tells the people who are connected about an approval, and whoever asked. It never waits and may be
// called with any lock held.
func (s *Server) ApprovalNews(e approval.Event) {
	record := e.Approval
	s.events.put(func() { s.tellApproval(e.Type, &record) })
}

func (s *Server) tellApproval(kind approval.EventType, record *approval.Record) {
	lost := s.events.gap()
	to := func(c *conn) bool {
		if lost {
			c.queue.offer(func(int64) delivery { return drop }, nil) // the client sees the gap and lists anew
		}
		return c.by.MayAnswer() == nil || c.asked(record)
	}
	if record.Request == nil { // too long to be kept in memory
		if shown, err := s.approvals.Shown(s.ctx, record.Key()); err == nil {
			record.Request = shown
		}
	}
	generic, exec := anyEntry(record), map[string]any(nil)
	if record.Kind == approval.KindExec {
		exec = execEntry(record)
	}
	if kind == approval.EventResolved {
		for _, entry := range []map[string]any{generic, exec} {
			if entry == nil {
				continue
			}
			delete(entry, "createdAtMs")
			delete(entry, "expiresAtMs")
			entry["decision"], entry["resolvedBy"], entry["ts"] = wordOf(record.Decision), textOrNil(record.ResolvedBy), record.ResolvedMs
		}
		generic["reason"] = textOrNil(record.Reason)
	}
	if exec != nil {
		s.broadcast("exec."+string(kind), exec, to)
	}
	s.broadcast(string(kind), generic, to)
}

// asked reports whether this connection, or its device, put the question.
func (c *conn) asked(record *approval.Record) bool {
	return record.Connection == c.id || c.admitted.deviceID != "" && record.Device == c.admitted.deviceID
}

// pairEvent tells who may pair about devices, and ends connections of devices that may not connect any more.
func (s *Server) pairEvent(e identity.PairEvent) {
	if s.paired != nil {
		s.paired(e)
	}
	s.events.put(func() {
		switch e.Kind {
		case identity.PairRequested:
			s.broadcast("device.pair.requested", requestWire(&e.Request), nil)
		case identity.PairApproved, identity.PairRejected:
			s.broadcast("device.pair.resolved", map[string]any{
				"requestId": e.Request.ID, "deviceId": e.DeviceID, "decision": e.Kind, "ts": e.At.UnixMilli(),
			}, nil)
		}
	})
	if e.Kind == identity.PairRemoved || e.Kind == identity.TokenRevoked {
		for _, c := range s.connected() {
			if c.admitted.deviceID == e.DeviceID && (e.Role == "" || c.admitted.role == e.Role) {
				c.queue.close(closing{closePolicy, "device removed"})
			}
		}
	}
}

// requestWire is a device that waits to be paired, as clients see it.
func requestWire(r *identity.PairRequest) map[string]any {
	return map[string]any{
		"requestId": r.ID, "deviceId": r.DeviceID, "displayName": textOrNil(r.Name), "platform": textOrNil(r.Platform),
		"deviceFamily": textOrNil(r.Family), "clientId": textOrNil(r.ClientID), "clientMode": textOrNil(r.Mode), "role": r.Role,
		"roles": []identity.Role{r.Role}, "scopes": emptyNotNil(r.Scopes), "remoteIp": textOrNil(r.IP), "silent": false,
		"isRepair": r.Repair, "reason": r.Reason, "ts": r.Created.UnixMilli(),
	}
}

func emptyNotNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func msOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}
