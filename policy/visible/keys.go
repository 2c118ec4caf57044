package visible

import (
	"maps"
	"slices"
	"strings"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Fold is the form in which ids and keys of the configuration are compared.
func Fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
