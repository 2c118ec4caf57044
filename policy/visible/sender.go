package visible

import (
	"strings"

	"github.com/toolward/toolward"
)

// senderKind is what a key of toolsBySender is compared with.
type senderKind int

// The kinds, most trustworthy first: an id cannot be chosen by its bearer, a display name is free for all.
const (
	byID senderKind = iota
	byPhone
	byUser
	byName
	byAnyone
)

var senderPrefixes = map[senderKind]string{byID: "id:", byPhone: "e164:", byUser: "username:", byName: "name:"}

// senderKey is a parsed key.
type senderKey struct {
	kind    senderKind
	value   string
	untyped bool // a bare id: old spelling
}

// parseSenderKey reads a key; ok is false if it names nobody.
func parseSenderKey(key string) (k senderKey, ok bool) {
	key = Fold(key)
	if key == "*" {
		return senderKey{kind: byAnyone}, true
	}
	for kind := byID; kind < byAnyone; kind++ {
		if value, found := strings.CutPrefix(key, senderPrefixes[kind]); found {
			value = strings.TrimSpace(value)
			if kind == byUser {
				value = strings.TrimPrefix(value, "@")
			}
			return senderKey{kind: kind, value: value}, value != ""
		}
	}
	value := strings.TrimPrefix(key, "@")
	return senderKey{kind: byID, value: value, untyped: true}, value != ""
}

// sender is who wrote a message, in the form of the keys.
type sender [byAnyone]string

func senderOf(c *toolward.Caller) sender {
	return sender{
		byID: Fold(c.Sender), byPhone: Fold(c.SenderPhone), byUser: strings.TrimPrefix(Fold(c.SenderUser), "@"),
		byName: Fold(c.SenderName),
	}
}

// senderRules finds the entry of a sender.
type senderRules[V any] struct {
	typed   map[senderKey]V
	untyped map[string]V // bare ids
}

func newSenderRules[V any]() *senderRules[V] {
	return &senderRules[V]{typed: map[senderKey]V{}, untyped: map[string]V{}}
}

// add keeps the first of equal keys.
func (s *senderRules[V]) add(k senderKey, v V) {
	bare := k.untyped
	k.untyped = false
	if _, there := s.typed[k]; there {
		return
	}
	s.typed[k] = v
	if bare {
		s.untyped[k.value] = v
	}
}

// match finds the entry of a sender: by id before phone number before user name before display name before *. A key
// is compared with its own kind only, so that nobody can pose as an id by choosing a name.
func (s *senderRules[V]) match(who sender) (v V, ok bool) {
	if s == nil {
		return v, false
	}
	for kind, value := range who {
		if value == "" {
			continue
		}
		if v, ok = s.typed[senderKey{kind: senderKind(kind), value: value}]; ok {
			return v, true
		}
		if senderKind(kind) == byID {
			if v, ok = s.untyped[strings.TrimPrefix(value, "@")]; ok {
				return v, true
			}
		}
	}
	v, ok = s.typed[senderKey{kind: byAnyone}]
	return v, ok
}
