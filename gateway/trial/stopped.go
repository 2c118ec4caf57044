package trial

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/redact"
	"github.com/toolward/toolward/shell"
)

// Stopped is a call that would not have run unseen, and what it did.
type Stopped struct {
	What    string   `json:"what"` // one of the harms
	Count   int      `json:"count"`
	How     string   `json:"how"` // refused, asked or confined
	Why     []string `json:"why"` // in the words of the verdict
	Call    string   `json:"call"`
	Client  string   `json:"client"`
	Session string   `json:"session"`
}

// harm is what a call is stopped for.
type harm struct {
	what string
	is   func(*judged) bool
}

// harms are those that are known, the gravest first.
var harms = []harm{
	{"tampers with its guard", func(o *judged) bool { return o.touches(place.Self, "") }},
	{"sends secrets out", (*judged).sendsSecrets},
	{"reads secrets", func(o *judged) bool { return o.touches(place.Secret, "") }},
	{"destroys work", (*judged).destroys},
	{"changes files that other programs run or obey", (*judged).plants},
	{"runs code that it fetches", func(o *judged) bool { return o.noted("runs code that it fetches") }},
	{"hides what it does", func(o *judged) bool { return o.found("command_hidden", "invisible_text") }},
}

// stoppages collects what would have been stopped. Equal ones count once.
type stoppages struct {
	redact *redact.Redactor
	most   int
	known  map[string]*Stopped
	others int
}

// maxStopped bounds the different ones that are kept.
const maxStopped = 5000

// harm is the gravest that the call does; "" if it does none that is known.
func (o *judged) harm() string {
	for _, h := range harms {
		if h.is(o) {
			return h.what
		}
	}
	return ""
}

// add takes up a call that does harm, and would not have run without a question.
func (s *stoppages) add(o *judged, what, how string) {
	call := preview(s.redact, o.call)
	key := what + "\x00" + how + "\x00" + call
	if known := s.known[key]; known != nil {
		known.Count++
		return
	}
	if len(s.known) >= maxStopped {
		s.others++
		return
	}
	if s.known == nil {
		s.known = map[string]*Stopped{}
	}
	s.known[key] = &Stopped{
		What: what, Count: 1, How: how, Why: o.words(s.redact), Call: call, Client: o.call.Client, Session: o.call.Session,
	}
}

// sorted are the gravest first, as many as were asked for.
func (s *stoppages) sorted() (list []*Stopped, left int) {
	list = []*Stopped{}
	for _, one := range s.known {
		list = append(list, one)
	}
	grave := func(one *Stopped) int {
		return slices.IndexFunc(harms, func(h harm) bool { return h.what == one.What })
	}
	slices.SortFunc(list, func(a, b *Stopped) int {
		return cmp.Or(cmp.Compare(grave(a), grave(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Call, b.Call))
	})
	left = s.others
	if s.most > 0 && len(list) > s.most {
		for _, one := range list[s.most:] {
			left += one.Count
		}
		list = list[:s.most]
	}
	return list, left
}

// words say why, as a person would have read it.
func (o *judged) words(r *redact.Redactor) (words []string) {
	add := func(text string) {
		if text = oneLine(r, text, maxPreview); text != "" && len(words) < 4 && !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	for _, reason := range o.host.Reasons {
		if reason.Layer == "validation" || reason.Layer == "place" || reason.Layer == "exec" {
			add(reason.Text)
		}
	}
	if o.assessment != nil {
		o.assessment.Each(func(s *command.Segment) {
			for _, asks := range s.Asks {
				add(asks.Detail)
			}
		})
	}
	return words
}

// touches reports whether the call has something to do with a file of a place. Of what a command does only that counts which
// asks; with a kind, only what changes files.
func (o *judged) touches(where place.Zone, kind shell.Kind) bool {
	if slices.ContainsFunc(o.facts.Targets, func(t toolward.Target) bool {
		return t.Zone == where.Word() && (kind == "" || t.Op != toolward.OpRead)
	}) {
		return true
	}
	return o.does(func(e *command.Judged) bool {
		return e.Place == where.String() && e.Verdict != toolward.Allow && (kind == "" || e.Kind == kind)
	}) || o.redirects(where, kind == shell.Writes)
}

// redirects reports whether a redirection that asks is to or from a file of a place.
func (o *judged) redirects(where place.Zone, writes bool) (found bool) {
	if o.assessment == nil {
		return false
	}
	o.assessment.Each(func(s *command.Segment) {
		found = found || slices.ContainsFunc(s.Redirs, func(r command.Redirect) bool {
			return r.File.Real != "" && r.File.Zone == where && r.Verdict != toolward.Allow && (!writes || r.Writes())
		})
	})
	return found
}

// does reports whether a part of the command has such an effect.
func (o *judged) does(such func(*command.Judged) bool) (found bool) {
	if o.assessment == nil {
		return false
	}
	o.assessment.Each(func(s *command.Segment) {
		for i := range s.Effects {
			found = found || such(&s.Effects[i])
		}
	})
	return found
}

func (o *judged) sendsSecrets() bool {
	if o.found("secret_shape", "secret_value", "url_exfil") || o.noted("sends what holds secrets") {
		return true
	}
	network := o.does(func(e *command.Judged) bool { return e.Kind == shell.Network })
	return network && o.touches(place.Secret, "")
}

func (o *judged) destroys() bool {
	return o.noted("deletes a whole tree", "writes to a device", "makes a file system") || o.facts.Deletes > 0 ||
		o.does(func(e *command.Judged) bool { return e.Kind == shell.Destroys && e.Verdict != toolward.Allow }) || o.deletes()
}

// deleting are programs that do nothing with a file but end it.
var deleting = []string{"rm", "rmdir", "unlink", "shred", "truncate", "dd", "wipefs"}

// deletes reports whether a program that only ends files would do so where it must not by itself.
func (o *judged) deletes() (found bool) {
	if o.assessment == nil {
		return false
	}
	o.assessment.Each(func(s *command.Segment) {
		found = found || slices.Contains(deleting, programIn(s)) && slices.ContainsFunc(s.Effects, func(e command.Judged) bool {
			return e.Kind == shell.Writes && e.Verdict != toolward.Allow
		})
	})
	return found
}

func (o *judged) plants() bool {
	return o.touches(place.Protected, shell.Writes) || o.touches(place.Instructions, shell.Writes) || o.noted("which is run later", "runs by the clock")
}

// found reports whether a finding has one of the codes.
func (o *judged) found(codes ...string) bool {
	return slices.ContainsFunc(o.host.Findings, func(f toolward.Finding) bool { return slices.Contains(codes, f.Code) })
}

// noted reports whether a finding about the command says one of these things.
func (o *judged) noted(texts ...string) bool {
	return slices.ContainsFunc(o.host.Findings, func(f toolward.Finding) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(f.Detail, text) })
	})
}
