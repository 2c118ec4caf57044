package execpolicy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolward/toolward/schema"
)

// EnvironmentHash binds an approval to the values that a call sets: SHA-256, lower hex, over the JSON list of
// [name, value] in byte order of the names, which are trimmed. Without any it is "". Only the names are shown to people.
func EnvironmentHash(env map[string]string) (hash string, names []string) {
	values := map[string]string{}
	for _, given := range slices.Sorted(maps.Keys(env)) {
		if name := strings.TrimSpace(given); PortableName(name) {
			values[name] = env[given] // white space sorts first: the exact name, which is the one that counts, wins
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	names = slices.Sorted(maps.Keys(values))
	pairs := make([]any, len(names))
	for i, name := range names {
		pairs[i] = []any{name, values[name]}
	}
	encoded, err := schema.Canonical(pairs)
	prefix := ""
	if err != nil {
		// Bytes that are not UTF-8 have no JSON. They never come out of decoded arguments, but must stay bound.
		encoded, prefix = fmt.Appendf(nil, "%q", pairs), "raw-"
	}
	sum := sha256.Sum256(encoded)
	return prefix + hex.EncodeToString(sum[:]), names
}
