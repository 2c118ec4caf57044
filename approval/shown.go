package approval

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// stamps signs when an approval was shown to whom. An answer brings the stamp back, and the server — not the page,
// which could be scripted or lag — ignores answers that come too soon: a click meant for what was on the screen
// before must not hit an entry that has just appeared under it.
type stamps struct{ key [32]byte }

func newStamps() *stamps {
	s := &stamps{}
	rand.Read(s.key[:]) // never fails: the program would end instead
	return s
}

const stampTime = 8 // bytes of time before the signature

func (s *stamps) sign(id, session string, at time.Time) string {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, stampTime+sha256.Size), uint64(at.UnixMilli()))
	return base64.RawURLEncoding.EncodeToString(s.seal(raw, id, session))
}

func (s *stamps) seal(raw []byte, id, session string) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{id, session} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write([]byte(part))
	}
	mac.Write(raw[:stampTime])
	return mac.Sum(raw)
}

// check accepts a stamp for this approval and this sign-in that is old enough. Stamps of another approval, of
// another person's screen, from before a restart, or made up, are refused.
func (s *stamps) check(stamp, id, session string, now time.Time) error {
	raw, err := base64.RawURLEncoding.DecodeString(stamp)
	if err != nil || len(raw) != stampTime+sha256.Size {
		return ErrNotShown
	}
	if want := s.seal(append([]byte(nil), raw[:stampTime]...), id, session); !hmac.Equal(raw, want) {
		return ErrNotShown
	}
	shown := time.UnixMilli(int64(binary.BigEndian.Uint64(raw)))
	if now.Sub(shown) < shownAtLeast {
		return ErrTooSoon
	}
	return nil
}
