package socket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strconv"
	"sync"
	"time"
)

// guard tells frames of those who know the secret from others.
type guard struct {
	token string

	mu   sync.Mutex
	seen map[string]time.Time // nonce → when it was used
	next time.Time            // when old nonces are forgotten
}

func newGuard(token string) *guard { return &guard{token: token, seen: map[string]time.Time{}} }

// knows compares the bare secret of a request frame, in constant time. An empty secret is nobody's.
func (g *guard) knows(token string) bool {
	return g.token != "" && token != "" && subtle.ConstantTimeCompare([]byte(g.token), []byte(token)) == 1
}

// check authenticates an approval or exec frame; nil if it holds. The order is part of the protocol: what is said of a
// frame depends only on what the checks before it have found to be good.
func (g *guard) check(f *frame, now time.Time) *Refusal {
	switch age := now.UnixMilli() - f.ts; {
	case age > window.Milliseconds() || age < -window.Milliseconds():
		return errExpired
	case g.token == "" || !hmac.Equal([]byte(sign(g.token, f.nonce, f.ts, f.payload)), []byte(f.digest)):
		return errAuth
	case !g.first(f.nonce, now):
		return errReplayed
	}
	return nil
}

// first notes a nonce and reports whether it is new. Only frames with a good digest come here, so a stranger cannot
// fill the memory; a full one refuses, because forgetting early would let a frame in twice.
func (g *guard) first(nonce string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.After(g.next) || len(g.seen) >= maxNonces {
		for n, at := range g.seen {
			if now.Sub(at) > nonceMemory {
				delete(g.seen, n)
			}
		}
		g.next = now.Add(nonceMemory)
	}
	if at, known := g.seen[nonce]; known && now.Sub(at) <= nonceMemory || len(g.seen) >= maxNonces {
		return false
	}
	g.seen[nonce] = now
	return true
}

// sign is the digest of a frame, in lower case.
func sign(token, nonce string, ts int64, payload string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(nonce + ":" + strconv.FormatInt(ts, 10) + ":" + payload))
	return hex.EncodeToString(mac.Sum(nil))
}

const nonceBytes = 16

func newNonce() string {
	var b [nonceBytes]byte
	rand.Read(b[:]) // never fails: the program would end instead
	return hex.EncodeToString(b[:])
}
