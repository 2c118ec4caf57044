// Package chat reads what people answer in a conversation.
package chat

import (
	"errors"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
)

// ApproveUsage is what a person is told who wrote an "/approve" that is not understood.
const ApproveUsage = "Usage: /approve <id> allow-once|allow-always|deny"

// Errors of [ParseApprove].
var (
	ErrNotApprove   = errors.New("not an /approve command")
	ErrApproveUsage = errors.New("not understood: " + ApproveUsage)
)

// approveWords are the words by which people answer in a chat, in lower case.
var approveWords = map[string]toolward.Decision{
	"allow": toolward.AllowOnce, "once": toolward.AllowOnce, "allow-once": toolward.AllowOnce, "allowonce": toolward.AllowOnce,
	"always": toolward.AllowAlways, "allow-always": toolward.AllowAlways, "allowalways": toolward.AllowAlways,
	"deny": toolward.DenyCall, "reject": toolward.DenyCall, "block": toolward.DenyCall,
}

// ParseApprove reads a chat message "/approve <id> <decision>", or with the two the other way round. Any other message
// is ErrNotApprove, one that begins so and is not understood ErrApproveUsage.
//
// Only what a person wrote may come here: a model that could have its own words read would answer its own questions.
// Whether the sender may answer is the caller's to check, before anything is said back.
func ParseApprove(text string) (id string, d toolward.Decision, err error) {
	words := strings.Fields(text)
	if len(words) == 0 || !strings.EqualFold(words[0], "/approve") {
		return "", toolward.NoDecision, ErrNotApprove
	}
	words = words[1:]
	if len(words) < 2 {
		return "", toolward.NoDecision, ErrApproveUsage
	}
	first, firstIs := approveWords[strings.ToLower(words[0])]
	second, secondIs := approveWords[strings.ToLower(words[1])]
	switch {
	case firstIs:
		id, d = words[1], first
	case secondIs:
		id, d = words[0], second
	default:
		return "", toolward.NoDecision, ErrApproveUsage
	}
	// "/approve 1234 allow deny" is no clear yes.
	for _, more := range words[2:] {
		if other, is := approveWords[strings.ToLower(more)]; is && other != d {
			return "", toolward.NoDecision, ErrApproveUsage
		}
	}
	if approval.CheckID(id) != nil {
		return "", toolward.NoDecision, ErrApproveUsage
	}
	return id, d, nil
}
