package approval

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// stamps signs which question was shown to whom, and when. An answer brings the stamp back, and the server — not the page,
// which could be scripted or lag — ignores answers that come too soon: a click meant for what was on the screen before must
// not hit an entry that has just appeared under it. Nor does an answer count that was given on the screen of another
// question: an asker chooses its id, and takes the same one for another command once the first is over, while a page still
// shows the first.
type stamps struct{ key [32]byte }

func newStamps() *stamps {
	s := &stamps{}
	rand.Read(s.key[:]) // never fails: the program would end instead
	return s
}

// A stamp is the time, a digest of what was shown, and the signature over both.
const (
	stampTime  = 8 // bytes
	stampShown = sha256.Size
	stampHead  = stampTime + stampShown
)

func (s *stamps) sign(r *Record, session string, at time.Time) string {
	head := binary.BigEndian.AppendUint64(make([]byte, 0, stampHead+sha256.Size), uint64(at.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(s.seal(append(head, questionOf(r)...), r.ID, session))
}

// questionOf tells the questions of one id apart: by the moment at which they were asked, too, since an asker may bind
// another text to the same digest.
func questionOf(r *Record) []byte {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(r.CreatedMs)), r.Binding...))
	return sum[:]
}

func (s *stamps) seal(head []byte, id, session string) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{id, session} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write([]byte(part))
	}
	mac.Write(head[:stampHead])
	return mac.Sum(head)
}

// check accepts a stamp for this question and this sign-in that is old enough. Stamps of another approval, of
// another person's screen, from before a restart, or made up, are refused.
func (s *stamps) check(stamp string, r *Record, session string, now time.Time) error {
	raw, err := base64.RawURLEncoding.DecodeString(stamp)
	if err != nil || len(raw) != stampHead+sha256.Size {
		return ErrNotShown
	}
	if want := s.seal(append([]byte(nil), raw[:stampHead]...), r.ID, session); !hmac.Equal(raw, want) {
		return ErrNotShown
	}
	if !bytes.Equal(raw[stampTime:stampHead], questionOf(r)) {
		return ErrChanged
	}
	shown := time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))
	if now.Sub(shown) < shownAtLeast {
		return ErrTooSoon
	}
	return nil
}
