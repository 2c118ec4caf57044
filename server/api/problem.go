package api

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// Problem puts what the desk refuses in the form of HTTP, as far as it is the same for every operation. Other errors stay what
// they are.
func Problem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotAllowed:
		return door.NewProblem(http.StatusUnauthorized, "", "%s", err.Error())
	case desk.Locked:
		return door.NewProblem(http.StatusConflict, "sign in with the passphrase: toolward login, or the console", "%s", err.Error())
	case desk.Unrecorded:
		return door.NewProblem(http.StatusServiceUnavailable, "try again once the record can be written", "it could not be recorded, so it was not done")
	}
	return err
}

// visitor is the caller at the desk.
func (c Caller) visitor() desk.Visitor { return desk.Visitor{By: c.By, Connection: c.Connection} }
