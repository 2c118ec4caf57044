package trial

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/store"
)

// Broken says where the record was changed after it was written.
type Broken struct{ *audit.Break }

// Verification says what to verify, and by what.
type Verification struct {
	Home   string // whose record, and whose key if Key is empty
	Export string // a file to verify in the place of the home's record
	Key    string // the public half of the record's key, in hex
	// Against is a file with checkpoints of the record that were kept elsewhere.
	Against string
}

// Verify checks the chain of hashes of a home's record, or of an exported file. It reads the state itself, so it also works
// when no gateway runs; an export with a key needs no home. A chain that does not hold is [Broken].
func Verify(ctx context.Context, v Verification) (report audit.Report, err error) {
	key, err := v.key()
	if err != nil {
		return report, err
	}
	elsewhere, err := v.elsewhere(key)
	if err != nil {
		return report, orBroken(err)
	}
	if v.Export != "" {
		f, err := os.Open(v.Export)
		if err != nil {
			return report, err
		}
		defer f.Close()
		report, err = audit.VerifyExport(f, key, elsewhere)
		return report, orBroken(err)
	}
	db, err := store.OpenReader(ctx, v.Home)
	if err != nil {
		return report, err
	}
	defer db.Close()
	report, err = audit.Verify(ctx, store.NewAuditReader(db), key, elsewhere)
	return report, orBroken(err)
}

func (v *Verification) key() (ed25519.PublicKey, error) {
	switch {
	case v.Key != "":
		return audit.ParseKey(v.Key)
	case v.Home == "":
		return nil, errors.New("verify the record: there is no home with a key, so the key must be given")
	}
	return audit.ReadKey(v.Home)
}

func (v *Verification) elsewhere(key ed25519.PublicKey) ([]audit.Seal, error) {
	if v.Against == "" {
		return nil, nil
	}
	f, err := os.Open(v.Against)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := audit.ReadStatements(f, key)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s holds no checkpoint", v.Against)
	}
	return list, err
}

// RecordKey is the public half of the key of a home's record, in hex: what verifies an export of it.
func RecordKey(home string) (string, error) {
	key, err := audit.ReadKey(home)
	return hex.EncodeToString(key), err
}

func orBroken(err error) error {
	if broken, ok := errors.AsType[*audit.Break](err); ok {
		return Broken{broken}
	}
	return err
}
