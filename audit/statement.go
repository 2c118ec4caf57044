package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// statementMark begins the line of a checkpoint that is kept elsewhere.
const statementMark = `{"checkpoint":"toolward audit v1",`

// statement is a seal of the log's end as it is kept elsewhere: where nobody who can change the log can take it back.
type statement struct {
	Checkpoint string    `json:"checkpoint"`
	Seq        int64     `json:"seq"`
	Hash       string    `json:"hash"`
	Time       time.Time `json:"time"`
	Open       int64     `json:"open"`
	Key        string    `json:"key"`
	Signature  string    `json:"signature"`
}

// Line is the seal in one line of JSON, without a line's end. [ReadStatements] reads it back.
func (s *Seal) Line() []byte {
	line, err := json.Marshal(statement{
		"toolward audit v1", s.Seq, s.Hash.String(), s.Time.UTC(), s.Open, s.Key, s.Signature,
	})
	if err != nil {
		return nil // a year that JSON cannot write: no clock says so
	}
	return line
}

// statementLimit bounds a line of a file of checkpoints: a log of the system holds other lines, too.
const statementLimit = 64 << 10

// ReadStatements reads the checkpoints of one log that were kept elsewhere, out of a file that may hold other lines and
// may have put words in front of each, as a log of the system does. A checkpoint that this log's key has not signed is a
// *Break: whoever wipes a log and begins another, with a key of its own, would otherwise only have to send checkpoints of
// that one to the same place.
func ReadStatements(r io.Reader, key ed25519.PublicKey) ([]Seal, error) {
	var list []Seal
	lines := bufio.NewReaderSize(r, statementLimit)
	for n := 1; ; n++ {
		line, long, err := lines.ReadLine()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the checkpoints: %w", err)
		}
		if at := bytes.Index(line, []byte(statementMark)); at >= 0 {
			seal, err := parseStatement(line[at:], key)
			if err != nil {
				return nil, &Break{seal.Seq, "signature", fmt.Sprintf("line %d of the checkpoints: %v", n, err)}
			}
			list = append(list, seal)
		}
		for long && err == nil {
			_, long, err = lines.ReadLine()
		}
	}
}

func parseStatement(line []byte, key ed25519.PublicKey) (Seal, error) {
	var s statement
	// A log of the system may write something behind it.
	if err := json.NewDecoder(bytes.NewReader(line)).Decode(&s); err != nil {
		return Seal{}, fmt.Errorf("it is cut off or changed: %w", err)
	}
	seal := Seal{Kind: SealHead, Seq: s.Seq, Time: s.Time, Open: s.Open, Key: s.Key, Signature: s.Signature}
	if n, err := hex.Decode(seal.Hash[:], []byte(s.Hash)); err != nil || n != len(seal.Hash) {
		return seal, fmt.Errorf("it has no hash")
	}
	return seal, seal.check(key)
}

// ParseKey reads the public half of a log's key: 64 hex digits, as [Log.PublicKey] is written.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("a public key has %d hex digits", 2*ed25519.PublicKeySize)
	}
	return key, nil
}
