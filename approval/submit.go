package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolward/toolward"
)

// Submission is a question of a program that asks over the gateway protocol and runs the call itself. Read is how the gate
// reads that call, nil if it cannot be read; what the program says of it are the claims of the details, and nothing else.
type Submission struct {
	ID         string // "" for a random one
	Kind       Kind
	Details    Details
	Read       *toolward.Question
	Binding    string // digest over everything that the question is about
	Allowed    []toolward.Decision
	Timeout    time.Duration // zero is the default
	Connection string
	Device     string
	Client     string
}

// ErrTooLong means that people could not be shown all of a question.
var ErrTooLong = errors.New("the command is too long to be shown to a person")

// Submit puts a question to people and returns its record without waiting. With nobody there to answer it is over
// already when Submit returns. Only AllowOnce and DenyCall are offered: the gateway does not run the call, so it has
// nothing that a later call could be recognized by, and a screen must not promise what nobody keeps.
func (m *Manager) Submit(ctx context.Context, s Submission) (*Record, error) {
	if s.ID == "" {
		s.ID = newID()
	}
	r := Record{
		ID: s.ID, Kind: s.Kind, Binding: s.Binding, Connection: s.Connection, Device: s.Device, Client: s.Client,
		Allowed: offered(s.Allowed),
	}
	var err error
	if r.Request, err = m.shownOf(&s); err != nil {
		return nil, err
	}
	joined, err := m.Register(ctx, r, s.Timeout)
	switch {
	case errors.Is(err, ErrResolved), errors.Is(err, ErrIDPending):
		return nil, ErrIDPending
	case err != nil:
		return nil, err
	case joined:
		return nil, ErrIDPending // the id is taken, even by the same question
	}
	m.people.prompted(r.Request, time.Now())
	m.mu.Lock()
	e := m.entries[s.ID]
	if e == nil {
		m.mu.Unlock()
		return nil, ErrUnknown // its life was so short that it is over
	}
	offer := e.record
	m.mu.Unlock()
	offer.Request = r.Request
	if !m.reaches(ctx, e, &offer) {
		m.expire(e, ByNoApprover)
	}
	m.mu.Lock()
	record := e.record
	m.mu.Unlock()
	record.Request = r.Request
	return &record, nil
}

// reaches reports whether somebody can answer. The requester itself does not count.
func (m *Manager) reaches(ctx context.Context, e *entry, r *Record) bool {
	if m.people.reachable(r.Connection, r.Device) > 0 || m.settings.Load().Absent == AbsentWait {
		return true
	}
	for _, c := range m.channels {
		if c.Offer(ctx, r) {
			return true
		}
	}
	if m.socketMay(r.Request.Level, r.Request.Severity) && m.socket.Reachable(ctx) {
		m.prompt(e, r)
		return true
	}
	return false
}

// shownOf is what people see: redacted, within its limits, and only if nothing that runs is hidden by it.
func (m *Manager) shownOf(s *Submission) (*Details, error) {
	d := s.Details
	d.ByProgram = true
	if len(d.Command) > maxCommand {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, len(d.Command), maxCommand)
	}
	if m.hides(d.Command) {
		return nil, errHidden
	}
	if s.Read != nil {
		if err := m.read(&d, s.Read); err != nil {
			return nil, err
		}
	}
	d.Command, d.Title = m.redact(d.Command), cut(m.redact(d.Title), maxTitle)
	texts := []any{s.Details.Command}
	for _, c := range d.Claims {
		texts = append(texts, c.Text)
	}
	d.Findings, d.Reasons = m.why(d.Findings, m.misleading(texts...), d.Reasons)
	d.Claims, d.Variables = m.claims(d.Claims), m.redacted(d.Variables)
	if d.Exec != nil {
		e := *d.Exec
		for _, text := range slices.Concat(e.Argv, e.EnvKeys, []string{e.ResolvedPath}) {
			if m.hides(text) {
				return nil, errHidden
			}
		}
		e.Argv, e.EnvKeys, e.ResolvedPath = m.redacted(e.Argv), m.redacted(e.EnvKeys), m.redact(e.ResolvedPath)
		d.Exec = &e
	}
	d.Proposals = nil
	return &d, nil
}

// offered are the decisions that can be given, of those that a requester wants to be offered. Saying no always can.
func offered(wanted []toolward.Decision) []toolward.Decision {
	for _, d := range wanted {
		if d == toolward.AllowOnce {
			return []toolward.Decision{toolward.AllowOnce, toolward.DenyCall}
		}
	}
	if len(wanted) > 0 {
		return []toolward.Decision{toolward.DenyCall}
	}
	return []toolward.Decision{toolward.AllowOnce, toolward.DenyCall}
}

// Own returns an approval to whoever requested it, by the connection or, if it has one, the device; and lets its
// question live on that would have ended because nobody came back for it after a restart.
func (m *Manager) Own(ctx context.Context, id, connection, device string) (*Record, error) {
	m.mu.Lock()
	m.sweep(time.Now())
	e := m.entries[id]
	if e == nil || e.phase == registering || !isSelf(e.record.Connection, e.record.Device, connection, device) {
		m.mu.Unlock()
		return nil, ErrUnknown // another's looks like none
	}
	if e.orphan {
		m.attach(e, true)
	}
	r, detail := e.record, e.detail
	m.mu.Unlock()
	d, err := m.details(ctx, r.Key(), detail)
	if err != nil {
		return nil, err
	}
	r.Request = d
	return &r, nil
}
