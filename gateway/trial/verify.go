package trial

import (
	"context"
	"errors"
	"os"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/store"
)

// Broken says where the record was changed after it was written.
type Broken struct{ *audit.Break }

// Verify checks the chain of hashes of a home's record, or of an exported file. It reads the state itself, so it also works
// when no gateway runs. A chain that does not hold is [Broken].
func Verify(ctx context.Context, home, export string) (report audit.Report, err error) {
	key, err := audit.ReadKey(home)
	if err != nil {
		return report, err
	}
	if export != "" {
		f, err := os.Open(export)
		if err != nil {
			return report, err
		}
		defer f.Close()
		report, err = audit.VerifyExport(f, key)
		return report, orBroken(err)
	}
	db, err := store.OpenReader(ctx, home)
	if err != nil {
		return report, err
	}
	defer db.Close()
	report, err = audit.Verify(ctx, store.NewAuditReader(db), key)
	return report, orBroken(err)
}

func orBroken(err error) error {
	if broken, ok := errors.AsType[*audit.Break](err); ok {
		return Broken{broken}
	}
	return err
}
