package doctor

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/authority"
	"github.com/toolward/toolward/authority/signed"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/store"
)

// record verifies the record and looks at remembered answers. It reads the state itself, whether a gateway runs or not.
func (e *examination) record() error {
	if !e.Deep {
		return nil
	}
	if !e.answers {
		why := "nobody asked it"
		if e.statusErr != nil {
			why = e.statusErr.Error()
		}
		e.find("gateway.probe_failed", "toolward up", "no gateway answers, so that every guarded call is refused: %s", why)
	}
	key, keyErr := audit.ReadKey(e.Home)
	if _, err := os.Lstat(filepath.Join(e.Home, store.FileName)); errors.Is(err, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		return nil // nothing has been recorded yet
	}
	gap := func(err error) {
		e.find("teg.audit_gap", "keep a copy of the state directory and find out who could change it; see toolward audit verify", "%v", err)
	}
	db, err := store.OpenReader(e.ctx, e.Home)
	if err != nil {
		gap(err)
		return nil
	}
	defer db.Close()
	if err := e.authority(db); err != nil {
		return err
	}
	switch {
	case keyErr != nil:
		gap(keyErr)
	default:
		if _, err := audit.Verify(e.ctx, store.NewAuditReader(db), key, nil); err != nil {
			if e.ctx.Err() != nil {
				return e.ctx.Err()
			}
			gap(err)
		}
	}
	grants, err := store.GrantsIn(e.ctx, db, e.Now.UnixMilli())
	if err != nil {
		return err
	}
	for _, g := range grants {
		if why := wide(g, e.Now); why != "" {
			e.find("teg.wide_grant", "toolward grants revoke "+g.ID, "%s, for %s of agent %s: %s", g.ID, g.Tool, g.Agent, why)
		}
	}
	return nil
}

// authority holds what was signed against the record. What is wrong with the file alone is found without it.
func (e *examination) authority(db *sql.DB) error {
	keys := authority.Open(e.Home, nil)
	if keys.Trouble() != nil {
		return nil
	}
	source := store.NewAuditReader(db)
	keys.Compare(e.ctx, func(ctx context.Context, f audit.Filter) ([]audit.Record, error) { return audit.Query(ctx, source, f) })
	if err := keys.Trouble(); err != nil {
		e.find("authority.damaged", "find out who changed it; sign in with the passphrase: what lasts then waits until you accept it again", "%v", err)
		return nil
	}
	altered, err := signed.Look(e.ctx, keys, db)
	if err != nil {
		return err
	}
	for _, found := range altered {
		e.find("authority.rows_altered", "find out who can write to state.db; what was added counts for nothing, what is gone has to be let in again", "%s", found)
	}
	last := keys.About(config.FileName).Accepted()
	row, known, err := store.ConfigurationIn(e.ctx, db)
	if err == nil && last != nil && (!known || !bytes.Equal(row, last)) {
		e.find("config.remembered_altered", "find out who can write to state.db; the next start of the gateway mends it",
			"state.db does not have the configuration that was last in force; the one that is signed counts")
	}
	return err
}

// longGrant is how long an answer for all sessions of an agent may be remembered without being called wide.
const longGrant = 90 * 24 * time.Hour

// wide says why a remembered answer covers much; "" if it does not.
func wide(g *approval.Grant, now time.Time) string {
	switch {
	case g.Match.Kind == toolward.GrantPath && place.Within(g.Workspace, cmp.Or(g.Match.Prefix, "/")):
		return "it covers the whole workspace " + g.Workspace
	case g.Scope == approval.ScopeAgent && time.UnixMilli(g.ExpiresMs).Sub(now) > longGrant:
		return fmt.Sprintf("it counts in every session until %s", time.UnixMilli(g.ExpiresMs).UTC().Format(time.DateOnly))
	}
	return ""
}
