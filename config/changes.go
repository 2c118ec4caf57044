package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one setting that differs between two configurations. A value of nil means that the setting is not there.
type Change struct {
	Key           string `json:"key"`
	Before, After any
	// Restart: the setting is read when the gateway starts; the new value counts from the next start.
	Restart bool `json:"restart,omitempty"`
}

// atStart are the settings that are read once, when the gateway starts. A key that ends in a point stands for all
// below it.
var atStart = []string{
	"server.", "bridge.", "undo.", "teg.mode", "teg.audit.sync", "teg.audit.checkpoints.", "limits.messageBytes", "limits.callsPerSession", "limits.tools.",
	"telemetry.",
}

// Changes lists what to changes in from, by key. Settings that a file only spells out (their value is the default)
// are no change.
func Changes(from, to *Loaded) ([]Change, error) {
	before, err := leavesOf(from.File)
	if err != nil {
		return nil, err
	}
	after, err := leavesOf(to.File)
	if err != nil {
		return nil, err
	}
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(before[key], after[key]) {
			changes = append(changes, Change{key, before[key], after[key], needsRestart(key)})
		}
	}
	return changes, nil
}

func needsRestart(key string) bool {
	return slices.ContainsFunc(atStart, func(s string) bool {
		return key == s || strings.HasSuffix(s, ".") && strings.HasPrefix(key, s)
	})
}

// restartKeys are the keys of a change that count from the next start only.
func restartKeys(from, to *Loaded) (keys []string) {
	changes, err := Changes(from, to)
	if err != nil {
		return atStart // better too many than a setting that is believed to be in force
	}
	for _, c := range changes {
		if c.Restart {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// String shows a change on one line: "teg.preset: strict → workspace".
func (c Change) String() string {
	text := fmt.Sprintf("%s: %s → %s", c.Key, leafText(c.Before), leafText(c.After))
	if c.Restart {
		text += " (from the next start)"
	}
	return text
}

func leafText(v any) string {
	if v == nil {
		return "not set"
	}
	return fmt.Sprint(v)
}
