package protocol

import (
	"context"
	"slices"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/server/door"
)

// Rhythms of news about the gateway itself.
const (
	presenceRhythm = 500 * time.Millisecond // a crowd that reconnects is told of at once, not one by one
	maxPresent     = 100                    // connections that are listed, the latest
)

// stateVersion numbers the states of who is connected and of the gateway's health, so that a client knows which one it has.
type stateVersion struct {
	Presence int64 `json:"presence"`
	Health   int64 `json:"health"`
}

func (s *Server) stateVersion() *stateVersion {
	return &stateVersion{s.presenceVersion.Load(), s.healthVersion.Load()}
}

// present lists who is connected, the latest first. It says nothing about where from: everybody who is connected may read it.
func (s *Server) present() []map[string]any {
	all := s.connected()
	slices.SortFunc(all, func(a, b *conn) int { return b.since.Compare(a.since) })
	list := []map[string]any{}
	for _, c := range all[:min(len(all), maxPresent)] {
		client := &c.admitted.client
		entry := map[string]any{
			"host": client.name(), "version": client.Version, "platform": client.Platform, "mode": client.Mode, "reason": "connect",
			"roles": []any{c.admitted.role}, "scopes": emptyNotNil(c.admitted.scopes), "ts": c.since.UnixMilli(),
			"text": client.name() + " (" + client.Mode + ")",
		}
		if client.DeviceFamily != "" {
			entry["deviceFamily"] = client.DeviceFamily
		}
		if c.admitted.deviceID != "" {
			entry["deviceId"] = c.admitted.deviceID
		}
		if c.by.MayAnswer() == nil {
			entry["tags"] = []string{"person"}
		}
		list = append(list, entry)
	}
	return list
}

// somebodyMoved notes that a connection began or ended.
func (s *Server) somebodyMoved() {
	s.presenceVersion.Add(1)
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// tellPresence tells who is connected, whenever that has changed.
func (s *Server) tellPresence() {
	for {
		select {
		case <-s.moved:
		case <-s.ctx.Done():
			return
		}
		timer := time.NewTimer(presenceRhythm)
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
		select {
		case <-s.moved: // they are in the list, too
		default:
		}
		s.broadcastState("presence", map[string]any{"presence": s.present()})
	}
}

// HealthNews looks at the gateway's health and tells everybody if it is not what it was. The server does so by itself with
// each tick; call it when something has changed. It may be called from any goroutine.
func (s *Server) HealthNews() {
	before := s.healthVersion.Load()
	if now := s.health(time.Now(), true); s.healthVersion.Load() != before {
		s.broadcastState("health", now)
	}
}

// Alert is something odd that people should look at.
type Alert struct {
	Kind     string // what noticed it
	Severity toolward.Severity
	Session  toolward.SessionKey // "" if it is about none
	Agent    string
	Tool     string
	Detail   string // in words
}

// SecurityNews tells the people who are connected about something odd. Agents are not told what their watchers notice. It
// never waits and may be called with any lock held.
func (s *Server) SecurityNews(a Alert) {
	payload := map[string]any{"kind": a.Kind, "severity": a.Severity, "detail": a.Detail, "ts": time.Now().UnixMilli()}
	for name, text := range map[string]string{"sessionKey": string(a.Session), "agentId": a.Agent, "tool": a.Tool} {
		if text != "" {
			payload[name] = text
		}
	}
	s.events.put(func() {
		s.broadcast("security", payload, func(c *conn) bool { return c.by.MayAnswer() == nil })
	})
}

// lockedOut tells people that somebody guesses credentials.
func (s *Server) lockedOut(at door.Source, class string) {
	from := addressOf(at.Client)
	if at.HasOrigin {
		from += ", a web page"
	}
	s.SecurityNews(Alert{
		Kind: "auth-lockout", Severity: toolward.Warning,
		Detail: "too many wrong credentials (" + class + ") from " + from + ": locked out for five minutes",
	})
}

// listPresence is system-presence.
func (r *call) listPresence(context.Context, *struct{}) (any, *Error) { return r.server.present(), nil }
