// Package tui shows approvals in a terminal and takes answers there.
//
// The rules of the dialogue: everything that an agent or a stranger wrote goes through package display, so that no
// text can move the cursor or pass for a line of ours. An answer is a letter and Enter; Enter alone answers nothing.
// An answer counts for the call that was shown last, and not within half a second of its being shown: keys typed
// ahead, or meant for something else, decide nothing.
package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
)

// eventBuffer is how many events may wait while a person reads; more are made up for by listing.
const eventBuffer = 64

// attendant is one terminal with a signed-in person in front of it.
type attendant struct {
	out      io.Writer
	manager  *approval.Manager
	by       approval.Authority
	presence *approval.Presence

	queue []string // ids that wait, in order of arrival
	shown string   // the one that an answer is for
	stamp string   // when it was shown, signed by the manager
}

// Attend shows waiting calls on out and takes answers from in until the context or the input ends. As long as it
// runs, the person counts as somebody who can answer.
func Attend(ctx context.Context, in io.Reader, out io.Writer, manager *approval.Manager, by approval.Authority) error {
	a := &attendant{out: out, manager: manager, by: by}
	news, err := manager.Subscribe(by, eventBuffer)
	if err != nil {
		return err
	}
	defer news.Close()
	if a.presence, err = manager.Attach(approval.Approver{Name: "the gateway's terminal", By: by, Connection: "foreground"}); err != nil {
		return err
	}
	defer a.presence.Close()
	lines, inputErr := readLines(ctx, in)
	fmt.Fprintln(out, "Calls that need you are shown here. Answer with a letter and Enter; ? explains.")
	if err := a.list(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-news.C:
			if !open {
				return errors.New("the sign-in of this terminal has ended")
			}
			if err := a.hear(ctx, event); err != nil {
				return err
			}
		case line, open := <-lines:
			if !open {
				return <-inputErr
			}
			a.presence.Active()
			if err := a.command(ctx, line); err != nil {
				return err
			}
		}
	}
}

// readLines reads lines on a goroutine of its own; it ends with the input.
func readLines(ctx context.Context, in io.Reader) (<-chan string, <-chan error) {
	lines, failed := make(chan string), make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				failed <- nil
				return
			}
		}
		failed <- scanner.Err()
	}()
	return lines, failed
}

// list makes the queue anew from what waits now.
func (a *attendant) list(ctx context.Context) error {
	pending, err := a.manager.Pending(ctx, a.by)
	if err != nil {
		return err
	}
	a.queue = a.queue[:0]
	for _, r := range pending {
		a.queue = append(a.queue, r.ID)
	}
	return a.showNext(ctx)
}

// hear takes news in. A call that is shown and settled elsewhere is said to be.
func (a *attendant) hear(ctx context.Context, event approval.Event) error {
	id := event.Approval.ID
	switch {
	case event.Missed:
		return a.list(ctx)
	case event.Type == approval.EventRequested:
		a.queue = append(a.queue, id)
		if a.shown == "" {
			return a.showNext(ctx)
		}
		fmt.Fprintf(a.out, "(%d more wait)\n", len(a.queue)-1)
		return nil
	}
	a.drop(id)
	if id != a.shown {
		return nil
	}
	fmt.Fprintf(a.out, "   %s: %s\n", event.Approval.Slug(), outcome(&event.Approval))
	a.shown = ""
	return a.showNext(ctx)
}

func (a *attendant) drop(id string) {
	for i, waiting := range a.queue {
		if waiting == id {
			a.queue = append(a.queue[:i], a.queue[i+1:]...)
			return
		}
	}
}

func outcome(r *approval.Record) string {
	by := ""
	if r.ResolvedBy != "" {
		by = " by " + display.Line(r.ResolvedBy)
	}
	switch r.Decision {
	case toolward.AllowOnce:
		return "allowed once" + by
	case toolward.AllowAlways:
		return "allowed, and remembered," + by
	case toolward.DenyCall:
		return "denied" + by
	default:
		return "ended without an answer" + by
	}
}

// showNext shows the first waiting call, if none is shown.
func (a *attendant) showNext(ctx context.Context) error {
	for a.shown == "" && len(a.queue) > 0 {
		record, err := a.manager.Get(ctx, a.by, a.queue[0])
		if err != nil || record.State != approval.StatePending {
			if errors.Is(err, approval.ErrNotAllowed) {
				return err
			}
			a.queue = a.queue[1:]
			continue
		}
		a.show(record)
	}
	return nil
}

func (a *attendant) show(r *approval.Record) {
	d := r.Request
	left := time.Until(time.UnixMilli(r.ExpiresMs)).Round(time.Second)
	fmt.Fprintf(a.out, "\n── %s  %s  %s  agent %s  level %s  %s left ──\n",
		r.Slug(), strings.ToUpper(d.Severity.String()), display.Line(d.Tool), display.Line(d.Agent), d.Level, left)
	if d.Command != "" {
		a.block(d.Command)
	} else {
		a.block(string(d.Preview))
	}
	if d.Cut {
		fmt.Fprintln(a.out, "   (this is not all of it: look at it in the console)")
	}
	for _, target := range d.Targets {
		fmt.Fprintln(a.out, "   target  ", display.Line(target))
	}
	for _, reason := range d.Reasons {
		fmt.Fprintln(a.out, "   because ", display.Line(reason))
	}
	if d.Diff != "" {
		a.block(d.Diff)
	}
	if r.Offers(toolward.AllowAlways) && len(d.Proposals) > 0 {
		fmt.Fprintln(a.out, "   always   saves:", display.Line(d.Proposals[0].Text))
	}
	fmt.Fprintf(a.out, "   digest   %.12s\n%s ", r.Binding, choices(r))
	a.shown, a.stamp = r.ID, a.manager.MarkShown(r.ID, a.by)
}

// block prints text of several lines, every line set in, so that it cannot pass for one of ours.
func (a *attendant) block(text string) {
	shown := display.Show(text, display.Options{Lines: true, Limit: 6000}).String()
	for line := range strings.Lines(shown) {
		fmt.Fprintln(a.out, "   │", strings.TrimRight(line, "\n"))
	}
}

func choices(r *approval.Record) string {
	if r.Offers(toolward.AllowAlways) && len(r.Request.Proposals) > 0 {
		return "[a] allow once  [A] always  [d REASON] deny  [?] >"
	}
	return "[a] allow once  [d REASON] deny  [?] >"
}

// command takes one typed line.
func (a *attendant) command(ctx context.Context, line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	answer := approval.Response{ID: a.shown, By: a.by, Connection: "foreground", Shown: a.stamp}
	switch word {
	case "":
		return nil // Enter alone answers nothing
	case "?", "help":
		fmt.Fprintln(a.out, "   a  allow this call once\n   A  allow it and remember, exactly as \"always saves\" says\n"+
			"   d  deny it; what follows is told to the model\n   l  list what waits")
		return nil
	case "l":
		a.shown = ""
		return a.list(ctx)
	case "a":
		answer.Decision = toolward.AllowOnce.String()
	case "A":
		answer.Decision = toolward.AllowAlways.String()
	case "d":
		answer.Decision, answer.Reason = toolward.DenyCall.String(), strings.TrimSpace(rest)
	default:
		fmt.Fprintln(a.out, "   there is no such answer; ? explains")
		return nil
	}
	if a.shown == "" {
		fmt.Fprintln(a.out, "   nothing waits")
		return nil
	}
	if rest != "" && word != "d" {
		fmt.Fprintln(a.out, "   write the letter alone; only a denial takes words")
		return nil
	}
	return a.resolve(ctx, answer)
}

func (a *attendant) resolve(ctx context.Context, answer approval.Response) error {
	_, err := a.manager.Resolve(ctx, answer)
	switch {
	case err == nil:
		return nil // the event tells how it ended and shows the next
	case errors.Is(err, approval.ErrNotAllowed):
		return err
	}
	fmt.Fprintln(a.out, "  ", display.Line(err.Error()))
	if errors.Is(err, approval.ErrUnknown) || errors.Is(err, approval.ErrResolved) {
		a.drop(a.shown)
		a.shown = ""
		return a.showNext(ctx)
	}
	return nil
}
