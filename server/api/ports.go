package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/sandbox/fleet"
	"github.com/toolward/toolward/sandbox/forward"
	"github.com/toolward/toolward/server/door"
)

// SandboxPorts is the answer of GET /v1/sandboxes/{name}/ports.
type SandboxPorts = desk.SandboxPorts

// ListeningPort is one port on which a program in a sandbox listens.
type ListeningPort = fleet.Listening

// PortForward is one port of a sandbox on this machine.
type PortForward = forward.Forward

// PortForwards is the answer of GET /v1/forwards.
type PortForwards struct {
	Forwards []PortForward `json:"forwards"`
}

// ForwardRequest is the body of POST /v1/sandboxes/{name}/forwards.
type ForwardRequest struct {
	Port uint16 `json:"port"`         // inside
	To   uint16 `json:"to,omitempty"` // of this machine's loopback address; 0: the same number
}

// StartedForward is the answer to it.
type StartedForward struct {
	PortForward
	At string `json:"url"`
}

func (s *Server) apiSandboxPorts(w http.ResponseWriter, r *http.Request, c Caller) error {
	name := r.PathValue("name")
	ctx, cancel := context.WithTimeout(r.Context(), SandboxPatience)
	defer cancel()
	ports, err := s.desk.SandboxPorts(ctx, c.visitor(), name)
	if err != nil {
		return ForwardProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, ports)
	return nil
}

func (s *Server) apiForwards(w http.ResponseWriter, _ *http.Request, c Caller) error {
	list, err := s.desk.PortForwards(c.visitor(), "")
	if err != nil {
		return ForwardProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, PortForwards{list})
	return nil
}

func (s *Server) apiForward(w http.ResponseWriter, r *http.Request, c Caller) error {
	var request ForwardRequest
	if err := door.ReadJSON(r, &request); err != nil {
		return err
	}
	f, err := s.desk.ForwardPort(r.Context(), c.visitor(), r.PathValue("name"), request.Port, request.To)
	if err != nil {
		return ForwardProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, StartedForward{f, f.URL()})
	return nil
}

func (s *Server) apiStopForward(w http.ResponseWriter, r *http.Request, c Caller) error {
	port, err := PortOf(r.PathValue("port"))
	if err != nil {
		return err
	}
	if err := s.desk.StopForward(r.Context(), c.visitor(), r.PathValue("name"), port); err != nil {
		return ForwardProblem(err)
	}
	door.WriteJSON(w, http.StatusOK, map[string]string{"done": "stopped"})
	return nil
}

// PortOf reads a port.
func PortOf(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, door.NewProblem(http.StatusBadRequest, "a port is a number from 1 to 65535", "%s is no port", door.QuoteShort(text))
	}
	return uint16(port), nil
}

// ForwardProblem says why ports were not told, forwarded or stopped.
func ForwardProblem(err error) error {
	switch desk.CodeOf(err) {
	case desk.NotKept:
		return NoSandboxes()
	case desk.Unknown:
		return door.NewProblem(http.StatusNotFound, "toolward sandbox ports", "%s", err.Error())
	case desk.Invalid:
		return door.NewProblem(http.StatusBadRequest, "docs/sandbox.md", "%s", err.Error())
	case desk.Failed:
		return door.NewProblem(http.StatusBadGateway, "toolward sandbox ports", "%s", err.Error())
	}
	return Problem(err)
}
