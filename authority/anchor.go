package authority

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/toolward/toolward/audit"
)

// anchorMark stands in each record that says which key the home has and how often it has signed.
const anchorMark = "toolward authority v1"

// anchor is the key of a home and the number of its last signature, as the record of calls has them. Whoever puts an older file in
// place, or one of another key, or takes it away, would have to forge the record as well.
type anchor struct {
	key    ed25519.PublicKey
	serial uint64
}

// Record is the event as the record of calls keeps it.
func (e Event) Record() audit.Event {
	data := map[string]any{"event": e.Name, "key": e.Key, "serial": int64(e.Serial)}
	if len(e.public) > 0 {
		data["anchor"], data["public"] = anchorMark, hex.EncodeToString(e.public)
	}
	if e.Subject != "" {
		data["subject"] = e.Subject
	}
	if e.Err != nil {
		data["error"] = e.Err.Error()
	}
	return audit.Event{Type: audit.TypeConfig, Durable: true, Data: data}
}

// Compare holds the file against the newest record that names the key of this home. If the file is older, of another key, gone, or
// unknown to the record, [Keys.Trouble] says so from then on, and nothing that was signed counts. So it is if the record cannot be read.
func (k *Keys) Compare(ctx context.Context, query func(context.Context, audit.Filter) ([]audit.Record, error)) {
	known, err := lastAnchor(ctx, query)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = known
	if err == nil {
		err = k.against(known)
	}
	if k.trouble == nil {
		k.trouble = err
	}
}

// against says what the record knows otherwise. The caller holds the lock.
func (k *Keys) against(known *anchor) error {
	switch {
	case known == nil && k.onDisk == nil:
		return nil // no key was ever made
	case known == nil:
		return fmt.Errorf("the record knows nothing of %s: one of them was exchanged", FileName)
	case k.onDisk == nil:
		k.gone = k.trouble == nil // a link, say, is there
		return fmt.Errorf("%s is gone: the record knows it with %d signatures", FileName, known.serial)
	case len(k.doc.Key) > 0 && !bytes.Equal(known.key, k.doc.Key):
		k.exchanged = true
		return fmt.Errorf("%s has another key than the record knows", FileName)
	case k.doc.Serial < known.serial:
		return fmt.Errorf("an older %s was put back: it has %d signatures, and the record knows of %d", FileName, k.doc.Serial, known.serial)
	}
	return nil
}

// lastAnchor is the newest one in the record; nil if there is none. Other records may quote the mark: whoever writes a file or
// names an agent chooses words of theirs, but not the fields that they stand in.
func lastAnchor(ctx context.Context, query func(context.Context, audit.Filter) ([]audit.Record, error)) (*anchor, error) {
	filter := audit.Filter{Type: audit.TypeConfig, Text: anchorMark}
	for {
		page, err := query(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("the record, which knows the key of this home, cannot be read: %w", err)
		}
		for _, r := range page {
			if found, is, err := parseAnchor(r.JSON); is || err != nil {
				return found, err
			}
		}
		if len(page) == 0 {
			return nil, nil
		}
		filter.Below = page[len(page)-1].Seq
	}
}

func parseAnchor(record string) (found *anchor, is bool, err error) {
	var r struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(record), &r); err != nil {
		return nil, false, errDamaged
	}
	if string(r.Data["anchor"]) != `"`+anchorMark+`"` {
		return nil, false, nil
	}
	var public string
	found = &anchor{}
	if err := errors.Join(json.Unmarshal(r.Data["public"], &public), json.Unmarshal(r.Data["serial"], &found.serial)); err != nil {
		return nil, true, errDamaged
	}
	if found.key, err = hex.DecodeString(public); err != nil || len(found.key) != ed25519.PublicKeySize {
		return nil, true, errDamaged
	}
	return found, true, nil
}

var errDamaged = errors.New("the record of the key of this home is damaged: see toolward audit verify")

// Now is what the record should say of the key at each start, and before old records are deleted: what stands there is
// forgotten with them otherwise. While the file is in trouble that is what the record said before, so that trouble does not end by waiting.
func (k *Keys) Now() (e Event, there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.trouble != nil:
		e = Event{Name: "authority cannot be trusted: nothing that was signed counts", Err: k.trouble}
		if k.known != nil {
			e.public, e.Key, e.Serial = k.known.key, fingerprint(k.known.key), k.known.serial
		}
		return e, true
	case len(k.doc.Key) > 0:
		return Event{Name: "authority as it is", Key: k.fingerprint(), Serial: k.doc.Serial, public: k.doc.Key}, true
	}
	return Event{}, false
}

// Findings are what the rolls found at the start that is not as people left it.
func (k *Keys) Findings() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.findings)
}

// Warnings are what people must know: what is wrong, or was until somebody signed in, and what the rolls found at the start.
func (k *Keys) Warnings() (words []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.trouble != nil:
		words = append(words, "what was signed does not count: "+k.trouble.Error())
	case k.mended != "":
		words = append(words, k.mended)
	}
	return append(words, k.findings...)
}
