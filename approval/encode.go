package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// encode writes JSON without escaping what only matters inside HTML: people read it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// decodeDetails reads what newEntry or the store wrote.
func decodeDetails(raw []byte) (*Details, error) {
	if len(raw) == 0 {
		return nil, errors.New("approval has no details")
	}
	d := new(Details)
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("decode approval details: %w", err)
	}
	return d, nil
}
