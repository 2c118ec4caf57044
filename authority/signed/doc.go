// Package signed stands before the stores of what gives rights: tokens, passkeys, paired devices and remembered answers. A row that a
// person did not add counts for nothing, whoever wrote it into the database: see package authority.
package signed

import (
	"context"
	"time"

	"github.com/toolward/toolward/authority"
)

// tidy takes a row away that was found unsigned. It fails quietly: such a row counts for nothing in any case.
func tidy(keys *authority.Keys, take func(context.Context) error) {
	if keys.Trouble() != nil {
		return // what is wrong is the file: the rows may be a person's, for whoever finds the right one
	}
	_ = take(context.Background()) // see above
}

// ms is a moment as the tables keep it.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
