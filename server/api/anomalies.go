package api

import (
	"net/http"

	"github.com/toolward/toolward/desk"
	"github.com/toolward/toolward/server/door"
)

// Anomalies is the answer of GET /v1/anomalies, newest first.
type Anomalies struct {
	Anomalies []desk.Anomaly `json:"anomalies"`
}

// apiAnomalies takes the filters of apiAudit.
func (s *Server) apiAnomalies(w http.ResponseWriter, r *http.Request, c Caller) error {
	filter, err := readFilter(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := s.desk.Anomalies(r.Context(), c.visitor(), filter)
	if err != nil {
		return door.NewProblem(http.StatusBadRequest, "", "%s", err.Error())
	}
	door.WriteJSON(w, http.StatusOK, Anomalies{list})
	return nil
}
