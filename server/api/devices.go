package api

import (
	"net/http"
	"time"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/identity"
	"github.com/toolward/toolward/server/door"
)

// Devices is the answer of GET /v1/devices.
type Devices struct {
	Pending []PendingDevice `json:"pending"`
	Paired  []PairedDevice  `json:"paired"`
}

// PendingDevice is a device that waits to be paired.
type PendingDevice struct {
	Request  string    `json:"request"` // id, for approve and reject
	Device   string    `json:"device"`
	Name     string    `json:"name,omitempty"`
	Client   string    `json:"client"`
	Platform string    `json:"platform"`
	Address  string    `json:"address"`
	Role     string    `json:"role"`
	Scopes   []string  `json:"scopes"`
	Reason   string    `json:"reason"`
	Asked    time.Time `json:"asked"`
}

// PairedDevice is a device that may connect.
type PairedDevice struct {
	Device   string    `json:"device"`
	Name     string    `json:"name,omitempty"`
	Client   string    `json:"client"`
	Platform string    `json:"platform"`
	Roles    []string  `json:"roles"`
	Scopes   []string  `json:"scopes"`  // what its connections may have
	Vouched  []string  `json:"vouched"` // what of it counts as a person's: a signed-in person approved it
	Person   string    `json:"person,omitempty"`
	Paired   time.Time `json:"paired"`
	Seen     time.Time `json:"seen,omitzero"`
}

func (s *Server) apiDevices(w http.ResponseWriter, _ *http.Request, c Caller) error {
	pending, paired, err := s.desk.Devices(c.visitor())
	if err != nil {
		return DeviceProblem(err)
	}
	answer := Devices{Pending: []PendingDevice{}, Paired: []PairedDevice{}}
	for _, r := range pending {
		answer.Pending = append(answer.Pending, PendingDevice{
			Request: r.ID, Device: r.DeviceID, Name: r.Name, Client: r.ClientID, Platform: r.Platform, Address: r.IP, Role: string(r.Role),
			Scopes: append([]string{}, r.Scopes...), Reason: string(r.Reason), Asked: r.Created,
		})
	}
	for i := range paired {
		answer.Paired = append(answer.Paired, pairedDevice(&paired[i]))
	}
	door.WriteJSON(w, http.StatusOK, answer)
	return nil
}

func pairedDevice(d *identity.PairedDevice) PairedDevice {
	out := PairedDevice{
		Device: d.ID, Name: d.Name, Client: d.ClientID, Platform: d.Platform, Roles: []string{}, Scopes: append([]string{}, d.Scopes...),
		Vouched: append([]string{}, d.Vouched...), Person: d.Person, Paired: d.Approved, Seen: d.Seen,
	}
	for _, role := range d.Roles {
		out.Roles = append(out.Roles, string(role))
	}
	return out
}

// apiApproveDevice pairs the device of a request, or vouches for one that was paired without asking.
func (s *Server) apiApproveDevice(w http.ResponseWriter, r *http.Request, c Caller) error {
	d, err := s.desk.ApproveDevice(r.Context(), c.visitor(), r.PathValue("id"))
	if err != nil {
		return DeviceProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, pairedDevice(&d))
	return nil
}

func (s *Server) apiRejectDevice(w http.ResponseWriter, r *http.Request, c Caller) error {
	if _, err := s.desk.RejectDevice(r.Context(), c.visitor(), r.PathValue("id")); err != nil {
		return DeviceProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

func (s *Server) apiRemoveDevice(w http.ResponseWriter, r *http.Request, c Caller) error {
	if err := s.desk.RemoveDevice(r.Context(), c.visitor(), r.PathValue("id")); err != nil {
		return DeviceProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, struct{}{})
	return nil
}

// DeviceProblem says why nothing was done to a device.
func DeviceProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotKept:
		return door.NewProblem(http.StatusNotFound, "", "%s", err.Error())
	case desk.Unknown:
		return door.NewProblem(http.StatusNotFound, "toolward devices list", "no such device waits or is paired")
	case desk.Invalid, desk.ScopeHeld:
		return door.NewProblem(http.StatusUnprocessableEntity, "", "%s", err.Error())
	}
	return Problem(err)
}
