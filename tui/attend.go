package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// connection names this screen towards the approval manager.
const connection = "daemon terminal"

const eventBuffer = 64

// Attend prints waiting calls and takes answers until ctx ends, the input ends, or the person leaves with "q" (nil
// in all three cases), or the sign-in ends (an error). While it runs, its person counts as an approver.
func (t *Terminal) Attend(ctx context.Context, approvals *approval.Manager, by approval.Authority) error {
	news, err := approvals.Subscribe(by, eventBuffer)
	if err != nil {
		return fmt.Errorf("attend: %w", err)
	}
	defer news.Close()
	presence, err := approvals.Attach(approval.Approver{Name: connection, By: by, Connection: connection})
	if err != nil {
		return fmt.Errorf("attend: %w", err)
	}
	defer presence.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &dialogue{Terminal: t, ctx: ctx, approvals: approvals, by: by}
	if err := d.list(); err != nil {
		return fmt.Errorf("attend: %w", err)
	}
	typed := t.lines(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, open := <-typed:
			if !open {
				return nil
			}
			presence.Active()
			if d.take(line) {
				t.printf("Nobody answers in this terminal any more.\n")
				return nil
			}
		case event, open := <-news.C:
			if !open {
				return d.ended()
			}
			if err := d.tell(event); err != nil {
				return fmt.Errorf("attend: %w", err)
			}
		}
	}
}

// dialogue is the state of one Attend. One call at a time is current: the one that was printed last and that
// answers are for.
type dialogue struct {
	*Terminal
	ctx       context.Context
	approvals *approval.Manager
	by        approval.Authority
	queue     []*approval.Record // waiting behind the current one, in the order of arrival
	current   *approval.Record
	stamp     string // of the moment at which the current one was printed
	whole     bool   // all of the current one was printed
}

// ended says why no more events come.
func (d *dialogue) ended() error {
	if err := d.by.MayAnswer(); err != nil {
		d.printf("\nThe sign-in of this terminal has ended.\n")
		return fmt.Errorf("attend: %w", err)
	}
	return nil // the manager is closing
}

// list begins anew with everything that waits now.
func (d *dialogue) list() error {
	waiting, err := d.approvals.Pending(d.ctx, d.by)
	if err != nil {
		return err
	}
	slices.SortStableFunc(waiting, func(a, b *approval.Record) int { return int(a.CreatedMs - b.CreatedMs) })
	d.queue = waiting
	if d.current != nil {
		at := slices.IndexFunc(waiting, func(r *approval.Record) bool { return r.ID == d.current.ID })
		if at >= 0 {
			d.queue = slices.Delete(waiting, at, at+1)
			return nil
		}
		d.printf("\nThis call was decided meanwhile.\n")
		d.current = nil
	}
	d.next()
	return nil
}

func (d *dialogue) tell(event approval.Event) error {
	if event.Missed {
		return d.list()
	}
	r := event.Approval
	switch {
	case event.Type == approval.EventRequested:
		d.queue = append(d.queue, &r)
		if d.current == nil {
			d.next()
			return nil
		}
		d.printf("\n(%s waiting behind this one)\n%s", calls(len(d.queue)), prompt)
	case d.current != nil && d.current.ID == r.ID:
		d.printf("\n%s\n", outcome(&r))
		d.current = nil
		d.next()
	default:
		d.queue = slices.DeleteFunc(d.queue, func(q *approval.Record) bool { return q.ID == r.ID })
	}
	return nil
}

// next makes the oldest waiting call current and prints it.
func (d *dialogue) next() {
	if len(d.queue) == 0 {
		return
	}
	d.current, d.queue = d.queue[0], d.queue[1:]
	d.show(false)
}

// show prints the current call. What was typed for the one before is thrown away, so that a half-typed "a" never
// allows the call that has just taken its place.
func (d *dialogue) show(whole bool) {
	d.whole = d.printCall(d.current, whole)
	d.forget()
	d.stamp = d.approvals.MarkShown(d.current, d.by)
	d.printf("%s", prompt)
}

// take acts on a typed line; true means that the person leaves.
func (d *dialogue) take(line string) (leave bool) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "q":
		return true
	case word == "?":
		d.printf("%s", help)
	case d.current == nil:
		d.printf("No call is waiting.\n")
		return false
	case word == "":
		d.printf("Nothing was answered.\n")
	case word == "m":
		d.show(true)
		return false
	case word == "d":
		d.answer(approval.Response{Decision: toolward.DenyCall.String(), Reason: strings.TrimSpace(rest)})
	case word == "a" && rest == "":
		d.allow(approval.Response{Decision: toolward.AllowOnce.String()})
	case strings.HasPrefix(word, "A") && rest == "":
		d.allowAlways(word[1:])
	default:
		d.printf("That is no answer. Type a, A1, d or ? and press Enter.\n")
	}
	if d.current != nil {
		d.printf("%s", prompt)
	}
	return false
}

// allowAlways saves the proposal that was printed with this number; without a number only if there is one.
func (d *dialogue) allowAlways(number string) {
	n := len(d.current.Request.Proposals)
	if !d.current.Offers(toolward.AllowAlways) {
		n = 0
	}
	i, err := strconv.Atoi(number)
	switch {
	case n == 0:
		d.printf("Nothing can be saved for this call.\n")
		return
	case number == "" && n == 1:
		i = 1
	case err != nil || i < 1 || i > n || number != strconv.Itoa(i):
		d.printf("Type the number of what you want to save: A1 to A%d.\n", n)
		return
	}
	d.allow(approval.Response{Decision: toolward.AllowAlways.String(), Proposal: i - 1})
}

// allow answers, if all of the call was on the screen.
func (d *dialogue) allow(r approval.Response) {
	if !d.whole {
		d.printf("Not all of this call was printed. Type m to read the rest, then answer.\n")
		return
	}
	d.answer(r)
}

func (d *dialogue) answer(r approval.Response) {
	r.ID, r.By, r.Connection, r.Shown = d.current.ID, d.by, connection, d.stamp
	_, err := d.approvals.Resolve(d.ctx, r)
	switch {
	case err == nil:
		// The event prints what became of it and goes on to the next call.
	case errors.Is(err, approval.ErrTooSoon):
		d.printf("That was typed before you could read the call. Read it, then answer.\n")
	case errors.Is(err, approval.ErrResolved), errors.Is(err, approval.ErrUnknown):
		d.printf("This call was decided meanwhile.\n")
	default:
		d.printf("Not answered: %s.\n", err)
	}
}

func calls(n int) string {
	if n == 1 {
		return "1 more call is"
	}
	return strconv.Itoa(n) + " more calls are"
}

// outcome tells what became of a call.
func outcome(r *approval.Record) string {
	at := time.UnixMilli(r.ResolvedMs).Format("15:04:05")
	switch {
	case r.Decision == toolward.AllowOnce:
		return at + "  Allowed once by " + r.ResolvedBy + "."
	case len(r.Saved) > 0:
		return at + "  Allowed by " + r.ResolvedBy + ", and from now on without a question."
	case r.Decision == toolward.AllowAlways:
		return at + "  Allowed by " + r.ResolvedBy + ", and saved as a grant."
	case r.Decision == toolward.DenyCall:
		return at + "  Denied by " + r.ResolvedBy + "."
	case r.ResolvedBy == approval.ByRequesterGone, r.ResolvedBy == approval.ByCanceled:
		return at + "  The agent does not wait any more; the call did not run."
	}
	return at + "  Nobody answered in time; the call was refused."
}
