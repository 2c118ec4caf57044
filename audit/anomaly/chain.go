package anomaly

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"

	"github.com/toolward/toolward"
)

// Limits of what is remembered of refusals and secrets.
const (
	evasionCalls = 3  // calls after a refusal
	exfilCalls   = 10 // calls after reading a secret
	maxRefusals  = 4
	maxReads     = 16
	maxTargets   = 64   // of one call
	maxNeedles   = 4    // paths and hosts of a refused call that are looked for in commands
	maxNeedle    = 512  // bytes
	maxCommand   = 2048 // bytes of a refused command
)

// refusal is a call that was refused: what it was aimed at must not be reached by another tool right after.
type refusal struct {
	tool    string
	targets []uint64
	needles []string // paths and hosts
	command string
	program bool // a program was refused that a command had started: to start it again is no other way
	left    int  // calls that are still compared
}

// read is a call that read what must not leave.
type read struct {
	id   uint64 // hash of the client's id of the call; 0 if it has none
	left int
}

// sight is what the detectors see of one request; it is taken before the lock.
type sight struct {
	request  *toolward.Request
	call     uint64 // hash of tool and parameters
	run      uint64 // hash of the run; 0 if it belongs to none
	poll     bool
	action   string   // of a poll of process
	targets  []uint64 // paths, hosts, recipients and command
	contacts []uint64 // hosts and recipients
	named    []bool   // the operator named the contact
	encoded  bool
	params   []length
}

type length struct {
	param uint64
	bytes int
}

// Kinds of targets, mixed into their hashes.
const (
	kindPath = iota + 1
	kindHost
	kindRecipient
	kindCommand
	kindWord
	kindSpawn
	kindID
	kindRun
	kindParam
)

func (m *Monitor) hash(kind uint64, s string) uint64 {
	return maphash.String(m.seed, s) ^ kind*0x9e3779b97f4a7c15
}

// glance takes the sight of a request that was looked at before; done gives it back.
func (m *Monitor) glance(r *toolward.Request) *sight {
	s := m.sights.Get().(*sight)
	s.request, s.call, s.run = r, m.callOf(r), m.runOf(r)
	s.poll, s.action = pollOf(r)
	m.lookAtTargets(s, &r.Facts)
	return s
}

// look takes the whole sight of a request.
func (m *Monitor) look(r *toolward.Request) *sight {
	s := m.glance(r)
	for _, text := range r.Facts.Outbound {
		s.encoded = s.encoded || hasEncoded(text)
	}
	tool := toolOf(r)
	for name, text := range r.Params.Texts() {
		if len(s.params) == maxParamsSeen {
			break
		}
		if !isBulk(tool, name) {
			s.params = append(s.params, length{m.hash(kindWord, tool) ^ bits.RotateLeft64(m.hash(kindParam, name), 1), len(text)})
		}
	}
	return s
}

// done keeps the memory of a sight for the next one. Nothing may point into it any more.
func (m *Monitor) done(s *sight) {
	*s = sight{targets: s.targets[:0], contacts: s.contacts[:0], named: s.named[:0], params: s.params[:0]}
	m.sights.Put(s)
}

func (m *Monitor) runOf(r *toolward.Request) uint64 {
	if r.Call.Run == "" {
		return 0
	}
	return m.hash(kindRun, r.Call.Run)
}

// idOf keeps a client's id of a call, which may be of any length.
func (m *Monitor) idOf(r *toolward.Request) uint64 {
	if r.Call.ID == "" {
		return 0
	}
	return m.hash(kindID, r.Call.ID)
}

// callOf tells calls of one session apart, by the digest over tool and parameters, which the record has too. A request
// without one was refused early. Parameters are canonical, so the order of keys does not matter.
func (m *Monitor) callOf(r *toolward.Request) uint64 {
	if r.Digest != "" {
		return maphash.String(m.seed, r.Digest)
	}
	var h maphash.Hash
	h.SetSeed(m.seed)
	_, _ = h.WriteString(toolOf(r))
	_ = h.WriteByte(0)
	h.Write(r.Params.Canonical())
	return h.Sum64()
}

func (m *Monitor) lookAtTargets(s *sight, f *toolward.Facts) {
	for _, t := range f.Targets[:min(len(f.Targets), maxTargets)] {
		s.targets = append(s.targets, m.hash(kindPath, pathOf(t)))
	}
	known := m.settings.Load().known
	for _, host := range f.Hosts[:min(len(f.Hosts), maxTargets)] {
		name := hostname(host)
		s.contact(m.hash(kindHost, name), known != nil && (known(host) || known(name)))
	}
	for _, who := range f.Recipients[:min(len(f.Recipients), maxTargets)] {
		s.contact(m.hash(kindRecipient, who), known != nil && known(who) || isOwnChat(&s.request.Call.Caller, who))
	}
	if command := strings.TrimSpace(f.Command); command != "" {
		s.targets = append(s.targets, m.hash(kindCommand, command))
	}
}

func (s *sight) contact(who uint64, named bool) {
	s.targets = append(s.targets, who)
	s.contacts = append(s.contacts, who)
	s.named = append(s.named, named)
}

func toolOf(r *toolward.Request) string {
	if r.Tool != nil {
		return r.Tool.Name
	}
	return r.Call.Tool
}

// pollOf reports whether a call is made to be repeated until something happens.
func pollOf(r *toolward.Request) (poll bool, action string) {
	switch toolOf(r) {
	case "command_status":
		return true, ""
	case "process":
		if action := r.Params.Text("action"); action == "poll" || action == "log" {
			return true, action
		}
	}
	return false, ""
}

func pathOf(t toolward.Target) string {
	if t.Real != "" {
		return t.Real
	}
	return t.Path
}

// hostname is the name in "scheme://host:port", in lower case: another port or scheme is still the same host.
func hostname(host string) string {
	if _, rest, ok := strings.Cut(host, "://"); ok {
		host = rest
	}
	if end := strings.LastIndexByte(host, ':'); end >= 0 && !strings.Contains(host[end:], "]") {
		host = host[:end]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isOwnChat reports whether a recipient is the owner who is speaking.
func isOwnChat(c *toolward.Caller, recipient string) bool {
	return c.Owner && c.Sender != "" && recipient == c.Channel+":"+c.Account+":"+c.Sender
}

// readsSecret reports whether a call reads a secret place, memory or another session.
func readsSecret(r *toolward.Request) bool {
	for _, t := range r.Facts.Targets {
		if t.Zone == "secret" && t.Op != toolward.OpWrite && t.Op != toolward.OpDelete {
			return true
		}
	}
	switch toolOf(r) {
	case "memory_search", "memory_get":
		return true
	case "sessions_history":
		return r.Facts.Scope != "self" // unknown is another's
	}
	return false
}

// refused remembers what a refused call was aimed at.
func (s *state) refused(v *sight) {
	f := &v.request.Facts
	r := refusal{tool: toolOf(v.request), targets: slices.Clone(v.targets), program: byProgram(v.request), left: evasionCalls}
	for _, t := range f.Targets {
		r.needle(pathOf(t))
	}
	for _, host := range f.Hosts {
		r.needle(hostname(host))
	}
	r.command = strings.Clone(f.Command[:min(len(f.Command), maxCommand)])
	if len(r.targets) == 0 {
		return
	}
	if len(s.refusals) == maxRefusals {
		s.refusals = append(s.refusals[:0], s.refusals[1:]...)
	}
	s.refusals = append(s.refusals, r)
}

func (r *refusal) needle(text string) {
	if len(r.needles) < maxNeedles && isNeedle(text) {
		r.needles = append(r.needles, strings.Clone(text))
	}
}

// isNeedle keeps "/" and "tmp" from being found in every command.
func isNeedle(text string) bool { return len(text) >= 5 && len(text) <= maxNeedle }

// evades reports whether a call goes by another tool where a call before it was refused, and counts the call.
func (s *state) evades(v *sight) bool {
	tool, evades := toolOf(v.request), false
	left := s.refusals[:0]
	for _, r := range s.refusals {
		again := r.program && v.request.Facts.Command != ""
		evades = evades || r.tool != tool && !again && r.sameTarget(v)
		if r.left--; r.left > 0 {
			left = append(left, r)
		}
	}
	clear(s.refusals[len(left):])
	s.refusals = left
	return evades
}

func (r *refusal) sameTarget(v *sight) bool {
	for _, t := range r.targets {
		for _, other := range v.targets {
			if t == other {
				return true
			}
		}
	}
	f := &v.request.Facts
	for _, needle := range r.needles {
		if mentions(f.Command, needle) {
			return true
		}
	}
	if r.command == "" {
		return false
	}
	for _, t := range f.Targets {
		if path := pathOf(t); isNeedle(path) && mentions(r.command, path) {
			return true
		}
	}
	for _, host := range f.Hosts {
		if name := hostname(host); isNeedle(name) && mentions(r.command, name) {
			return true
		}
	}
	return false
}

// mentions reports whether a command has the text as a whole name: /etc/passwd is not in "cat /etc/passwd.bak".
func mentions(command, text string) bool {
	for from := 0; ; {
		at := strings.Index(command[from:], text)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(text)
		if (at == 0 || !isNameByte(command[at-1])) && (end == len(command) || !isNameByte(command[end])) {
			return true
		}
		from = at + 1
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c >= 0x80
}

// chained counts the call after the secrets read before it and reports whether one of them is near.
func (s *state) chained() bool {
	near := len(s.reads) > 0
	left := s.reads[:0]
	for _, r := range s.reads {
		if r.left--; r.left > 0 {
			left = append(left, r)
		}
	}
	s.reads = left
	return near
}

func (s *state) remember(r read) {
	if len(s.reads) == maxReads {
		s.reads = append(s.reads[:0], s.reads[1:]...)
	}
	s.reads = append(s.reads, r)
}

// name remembers the words of an owner's message: hosts and recipients among them are named by the owner.
func (m *Monitor) name(s *state, text string) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r < 0x80 && !isNameByte(byte(r)) && r != '@' && r != '+' && r != '#'
	}) {
		if word = strings.Trim(word, ".-"); len(word) >= 3 && len(word) <= maxNeedle {
			s.words.add(m.hash(kindWord, strings.ToLower(word)))
		}
	}
}

// ownerNamed reports whether an owner wrote the name of the i-th contact.
func (m *Monitor) ownerNamed(s *state, v *sight, i int) bool {
	f := &v.request.Facts
	hosts := min(len(f.Hosts), maxTargets)
	if i < hosts {
		return s.words.contains(m.hash(kindWord, hostname(f.Hosts[i])))
	}
	who := strings.ToLower(f.Recipients[i-hosts])
	if parts := strings.SplitN(who, ":", 3); len(parts) == 3 {
		who = parts[2]
	}
	return s.words.contains(m.hash(kindWord, strings.Trim(who, ".-")))
}
