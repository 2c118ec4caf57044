package gateway

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/toolward/toolward"
)

// Answering is an approver that puts every question to a function, for programs that have nobody else to ask. It remembers
// no answers. The zero Answer refuses.
func Answering(answer func(context.Context, *toolward.Question) toolward.Answer) toolward.Approver {
	return &answering{answer: answer, allowed: map[string]string{}}
}

type answering struct {
	answer func(context.Context, *toolward.Question) toolward.Answer

	mu      sync.Mutex
	asked   int
	allowed map[string]string // binding by id, until the answer is used
}

var errUsed = errors.New("there is no such answer, it was for another call, or it has been used")

// Granted says no.
func (*answering) Granted(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Covered says no.
func (*answering) Covered(context.Context, *toolward.Question) (string, bool, error) {
	return "", false, nil
}

// Ask puts the question to the function.
func (a *answering) Ask(ctx context.Context, q *toolward.Question) (toolward.Answer, error) {
	answer := a.answer(ctx, q)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	answer.ApprovalID = strconv.Itoa(a.asked)
	if answer.Decision.Allows() {
		a.allowed[answer.ApprovalID] = q.Binding
	}
	return answer, nil
}

// Consume uses an answer up. One yes runs one call, the one that was asked about: nothing can be run again on it, and nothing
// else in its place.
func (a *answering) Consume(_ context.Context, id, binding string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if allowed, ok := a.allowed[id]; !ok || allowed != binding {
		return errUsed
	}
	delete(a.allowed, id)
	return nil
}
