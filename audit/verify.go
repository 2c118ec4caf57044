package audit

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Break is the first place at which a log is not what was written.
type Break struct {
	Seq    int64  // the record at which it shows
	Kind   string // changed, removed, reordered, truncated, signature or malformed
	Detail string // in words
}

func (b *Break) Error() string {
	return fmt.Sprintf("audit log broken at record %d (%s): %s", b.Seq, b.Kind, b.Detail)
}

// Report is what a verification looked at.
type Report struct {
	Records     int64 `json:"records"`
	First       int64 `json:"first"`
	Last        int64 `json:"last"`
	Checkpoints int   `json:"checkpoints"`
	// Sealed is the last record that a signature vouches for; the end of the
	// chain could be cut off behind it without trace.
	Sealed int64 `json:"sealed"`
	// Compared are the checkpoints kept elsewhere that the chain was compared with. The others are about records before
	// its first one.
	Compared int `json:"compared"`
}

// Verify reads a whole log and returns a *Break at the first record that was
// changed, removed, moved or cut off. It compares the fields that queries use
// with the records too: a record that is hidden from queries is a change. The
// log may be written meanwhile.
//
// elsewhere are checkpoints that were kept where whoever changes the log, even
// with its key, cannot change them; see [ReadStatements]. They must be read
// before.
func Verify(ctx context.Context, source Source, key ed25519.PublicKey, elsewhere []Seal) (Report, error) {
	for {
		report, base, err := verifyOnce(ctx, source, key, elsewhere)
		var broken *Break
		if err == nil || !errors.As(err, &broken) {
			return report, err
		}
		// What retention deletes during the walk is no break.
		seals, sealsErr := source.Seals(ctx)
		if sealsErr != nil || baseOf(seals) == base {
			return report, err
		}
	}
}

// baseOf is the position up to which retention has deleted.
func baseOf(seals []Seal) int64 {
	for i := range seals {
		if seals[i].Kind == SealBase {
			return seals[i].Seq
		}
	}
	return 0
}

func verifyOnce(ctx context.Context, source Source, key ed25519.PublicKey, elsewhere []Seal) (_ Report, base int64, err error) {
	seals, err := source.Seals(ctx)
	if err != nil {
		return Report{}, 0, fmt.Errorf("verify the audit log: %w", err)
	}
	base = baseOf(seals)
	v := verifier{key: key, next: 1, elsewhere: bySeq(elsewhere)}
	for i := range seals {
		if err := seals[i].check(key); err != nil {
			return v.report, base, &Break{seals[i].Seq, "signature", err.Error()}
		}
		switch seals[i].Kind {
		case SealBase:
			v.next, v.prev = seals[i].Seq+1, seals[i].Hash
		case SealHead:
			v.head = &seals[i]
		}
	}
	err = source.Scan(ctx, 0, v.stored)
	if err == nil {
		err = v.end()
	}
	var broken *Break
	if err != nil && !errors.As(err, &broken) {
		err = fmt.Errorf("verify the audit log: %w", err)
	}
	return v.report, base, err
}

// VerifyExport verifies a whole export, as written by [Export] without a
// filter, by the signatures of the checkpoints in it and by checkpoints that
// were kept elsewhere. It needs nothing else: no home and no state.
func VerifyExport(r io.Reader, key ed25519.PublicKey, elsewhere []Seal) (Report, error) {
	v := verifier{key: key, elsewhere: bySeq(elsewhere)}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			record, ok := parseLine(line)
			if !ok {
				return v.report, &Break{v.next, "malformed", "a line does not end in the record's hash"}
			}
			if err := v.read(&record); err != nil {
				return v.report, err
			}
			if err := v.record(&record); err != nil {
				return v.report, err
			}
		}
		if errors.Is(err, io.EOF) {
			return v.report, v.endOfExport()
		}
		if err != nil {
			return v.report, fmt.Errorf("verify the export: %w", err)
		}
	}
}

// parseLine takes an exported line apart: AppendNDJSON in reverse.
func parseLine(line string) (r Record, ok bool) {
	const marker = `,"hash":"`
	cut := len(line) - len(marker) - 2*len(r.Hash) - len(`"}`)
	if cut < 1 || !strings.HasPrefix(line[cut:], marker) || !strings.HasSuffix(line, `"}`) {
		return r, false
	}
	digits := line[cut+len(marker) : len(line)-len(`"}`)]
	if n, err := hex.Decode(r.Hash[:], []byte(digits)); err != nil || n != len(r.Hash) {
		return r, false
	}
	r.JSON = line[:cut] + "}"
	return r, true
}

// body is what a verification reads in a record.
type body struct {
	Seq, Decision                              int64
	Prev, TS, Type                             string
	SessionKey, AgentID, Tool, Verdict, Status string
	Checkpoint                                 *struct {
		Hash, Key, Signature string
		Seq, Open            int64
	}
}

// verifier walks along a chain.
type verifier struct {
	key  ed25519.PublicKey
	next int64 // the position that must come; 0: any, for the first record of an export
	prev Hash
	head *Seal
	// elsewhere are the checkpoints that were kept elsewhere, by the record that each is about.
	elsewhere map[int64][]Seal
	report    Report
	body      body // of the record being looked at
}

// stored checks one record as it is stored.
func (v *verifier) stored(r *Record) error {
	if err := v.read(r); err != nil {
		return err
	}
	if err := v.columns(r); err != nil {
		return err
	}
	return v.record(r)
}

// read decodes the record into body.
func (v *verifier) read(r *Record) error {
	v.body = body{}
	if err := json.Unmarshal([]byte(r.JSON), &v.body); err != nil {
		return &Break{max(r.Seq, v.next), "changed", "the record is not JSON"}
	}
	return nil
}

// columns compares the fields beside the record with the record.
func (v *verifier) columns(r *Record) error {
	b := &v.body
	if b.Seq != r.Seq {
		return &Break{r.Seq, "reordered", fmt.Sprintf("record %d stands in its place", b.Seq)}
	}
	same := b.Type == string(r.Type) && b.Decision == r.Ref && b.SessionKey == r.Session && b.AgentID == r.Agent &&
		b.Tool == r.Tool && b.Verdict == r.Verdict && b.Status == r.Status && b.TS == r.Time.UTC().Format(timeFormat)
	if !same {
		return &Break{r.Seq, "changed", "the fields that queries use differ from the record"}
	}
	return nil
}

// record checks one record against the one before.
func (v *verifier) record(r *Record) error {
	b := &v.body
	prev := v.prev
	if v.next == 0 { // an export may begin in the middle of the chain
		v.next = b.Seq
		if n, err := hex.Decode(prev[:], []byte(b.Prev)); err != nil || n != len(prev) {
			return &Break{b.Seq, "changed", "the record has no previous hash"}
		}
	}
	switch {
	case b.Seq > v.next:
		return &Break{v.next, "removed", fmt.Sprintf("records %d to %d are missing", v.next, b.Seq-1)}
	case b.Seq < v.next:
		return &Break{b.Seq, "reordered", fmt.Sprintf("record %d comes where %d should", b.Seq, v.next)}
	case b.Prev != prev.String():
		return &Break{b.Seq, "changed", fmt.Sprintf("it does not follow record %d as that one is now: one of the two was changed", b.Seq-1)}
	case chain(prev, r.JSON) != r.Hash:
		return &Break{b.Seq, "changed", "its hash does not fit its text"}
	}
	if err := v.checkpoint(); err != nil {
		return err
	}
	if v.head != nil && v.head.Seq == b.Seq && v.head.Hash != r.Hash {
		return &Break{b.Seq, "changed", "it is not the record that was sealed"}
	}
	for i := range v.elsewhere[b.Seq] {
		if v.elsewhere[b.Seq][i].Hash != r.Hash {
			return &Break{b.Seq, "changed", "it is not the record that a checkpoint kept elsewhere is about"}
		}
		v.report.Compared++
		v.report.Sealed = max(v.report.Sealed, b.Seq)
	}
	v.report.Records++
	if v.report.First == 0 {
		v.report.First = b.Seq
	}
	v.report.Last = b.Seq
	v.next, v.prev = b.Seq+1, r.Hash
	return nil
}

// checkpoint checks the signature in a checkpoint record. Whoever computes the
// chain anew after a change cannot sign it.
func (v *verifier) checkpoint() error {
	b := &v.body
	if b.Type != string(TypeCheckpoint) {
		return nil
	}
	c := b.Checkpoint
	at, err := time.Parse(timeFormat, b.TS)
	if err != nil || c == nil {
		return &Break{b.Seq, "changed", "the checkpoint is incomplete"}
	}
	if c.Seq != b.Seq-1 || c.Hash != b.Prev {
		return &Break{b.Seq, "signature", "the checkpoint is about another record than the one before it"}
	}
	s := Seal{Kind: SealCheckpoint, Seq: c.Seq, Time: at, Open: c.Open, Signature: c.Signature}
	if n, err := hex.Decode(s.Hash[:], []byte(c.Hash)); err != nil || n != len(s.Hash) {
		return &Break{b.Seq, "signature", "the checkpoint has no hash"}
	}
	if err := s.check(v.key); err != nil {
		return &Break{b.Seq, "signature", err.Error()}
	}
	v.report.Checkpoints++
	v.report.Sealed = max(v.report.Sealed, c.Seq)
	return nil
}

// end compares the last record with the head seal.
func (v *verifier) end() error {
	if v.head == nil {
		// A log is sealed before its first record, while it is opened: one that has a key and no seal lost it. Otherwise
		// whoever deletes everything would leave a log that looks as if nothing had ever happened.
		return &Break{v.next, "truncated", "the seal of the log's end is missing"}
	}
	if v.head.Seq >= v.next {
		return &Break{v.next, "truncated", fmt.Sprintf("the log ends at record %d, but it reached %d", v.next-1, v.head.Seq)}
	}
	v.report.Sealed = max(v.report.Sealed, v.head.Seq)
	return v.reached()
}

// endOfExport is for what has no seal of its end. An export in which nothing is signed proves nothing: anybody can compute
// a chain of hashes.
func (v *verifier) endOfExport() error {
	if err := v.reached(); err != nil {
		return err
	}
	if v.report.Sealed == 0 {
		return &Break{v.report.First, "signature", "no checkpoint is in it, so that nothing shows who wrote it: export the record anew, as a whole"}
	}
	return nil
}

// reached compares the last record with the checkpoints that were kept elsewhere: restoring an old copy of the whole log
// passes every other check.
func (v *verifier) reached() error {
	end := max(v.next-1, 0)
	last := end
	for seq := range v.elsewhere {
		last = max(last, seq)
	}
	if last > end {
		return &Break{end + 1, "truncated", fmt.Sprintf("the log ends at record %d, but a checkpoint kept elsewhere says that it reached %d", end, last)}
	}
	return nil
}

func bySeq(seals []Seal) map[int64][]Seal {
	by := map[int64][]Seal{}
	for _, s := range seals {
		by[s.Seq] = append(by[s.Seq], s)
	}
	return by
}

// textOf reads one text field of a record, "" if it has none.
func textOf(record, name string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(record), &fields) != nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(fields[name], &text)
	return text
}
