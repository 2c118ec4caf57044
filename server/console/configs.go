package console

import (
	"net/http"

	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/server/api"
	"github.com/toolward/toolward/server/console/difference"
)

// configCard is a changed configuration file that waits for a person.
type configCard struct {
	File     string
	Changes  [][]span // settings in words
	More     int      // that are not listed
	Block    block
	Revision string
}

// maxChanges is how many settings the card lists; the difference shows all.
const maxChanges = 40

// configCard shows the configuration that waits for a person; nil if none does.
func (s *Server) configCard(v *visitor) *configCard {
	change, waits, err := s.desk.PendingChange(v.atDesk())
	if err != nil || !waits {
		return nil
	}
	card := &configCard{
		File: change.File, Revision: change.Revision, Block: block{Label: "Change", Diff: difference.Read(change.Diff)},
		More: max(0, len(change.Changes)-maxChanges),
	}
	for _, text := range change.Changes[:min(len(change.Changes), maxChanges)] {
		card.Changes = append(card.Changes, display.Show(text, display.Options{Limit: 400}).Pieces)
	}
	return card
}

// applyFromPage is POST /c/{key}/config.
func (s *Server) applyFromPage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	if err := parseForm(r); err != nil {
		return err
	}
	if err := s.desk.ApplyChange(r.Context(), v.atDesk(), r.PostForm.Get("revision")); err != nil {
		return api.ConfigProblem(err)
	}
	http.Redirect(w, r, v.base+"/", http.StatusSeeOther)
	return nil
}
