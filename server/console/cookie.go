package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"net/http"
	"strings"
)

// cookieName is the cookie of a signed-in browser.
const cookieName = "toolward"

// A browser does not keep cookies of different ports apart: whatever an agent serves on localhost:3000 receives
// every cookie of localhost that its path matches. A person who opens an agent's preview page would hand the agent
// their sign-in. So the cookie is bound to a path that nobody can guess: the console lives under /c/<key>, where
// the key is derived from the cookie. The other program's pages lie elsewhere and never receive the cookie, and
// knowing the path without the cookie is worth nothing.
const consolePrefix = "/c/"

// pathKey derives the console's path from the cookie's token.
func pathKey(token string) string {
	sum := sha256.Sum256([]byte("toolward console path v1\x00" + token))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

func signInCookie(token string, secure bool) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: token, Path: consolePrefix + pathKey(token),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: secure, // on loopback there is no TLS, and Safari drops secure cookies there
	}
}

func endedSignInCookie(key string) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Path: consolePrefix + key, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// signInToken returns the token of a request under /c/{key}/ if the cookie belongs to that path.
func signInToken(r *http.Request) (string, bool) { return cookieOf(r, cookieName) }

// cookieOf returns the value of a cookie that belongs to the path of a request.
func cookieOf(r *http.Request, name string) (string, bool) {
	key := r.PathValue("key")
	for _, cookie := range r.CookiesNamed(name) {
		// Cookies that another program on this host has set are skipped, not believed.
		if subtle.ConstantTimeCompare([]byte(pathKey(cookie.Value)), []byte(key)) == 1 {
			return cookie.Value, true
		}
	}
	return "", false
}
