package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// writeWhole replaces a file of the store by one that is complete.
func writeWhole(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// readWhole reads what writeWhole wrote.
func readWhole(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return nil
}

// stuck ends the names of journals that could not be finished.
const stuck = ".stuck"

// filesOf are the complete files of one of the store's directories, by name; those that were never completed go.
func filesOf(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".json":
			names = append(names, filepath.Join(dir, e.Name()))
			continue
		case stuck:
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return names, nil
}
