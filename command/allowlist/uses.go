package allowlist

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"
)

// useEvery is how often uses are written: agents run many commands in a second, and each write costs an fsync.
const useEvery = time.Second

// lastUsedMost is how many characters of a command are kept.
const lastUsedMost = 2000

// RecordUse notes uses of entries. It returns at once; they are written together, at most once a second. What cannot be
// written is logged and lost: it decides nothing.
func (a *Store) RecordUse(uses ...Use) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(uses) == 0 {
		return
	}
	for _, u := range uses {
		a.uses[useKey{u.Agent, entryKey(u.Pattern, u.Argv)}] = u
	}
	if a.timer == nil {
		a.timer = time.AfterFunc(max(0, useEvery-time.Since(a.flushed)), a.flush)
	}
}

// Close writes what is still noted.
func (a *Store) Close() {
	a.mu.Lock()
	waiting := a.timer != nil && a.timer.Stop()
	a.closed = true
	a.mu.Unlock()
	if waiting {
		a.flush()
	}
	a.writing.Lock() // a write that has begun ends first
	defer a.writing.Unlock()
}

func (a *Store) flush() {
	a.mu.Lock()
	uses := a.uses
	a.uses, a.timer, a.flushed = map[useKey]Use{}, nil, time.Now()
	a.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	_, err := a.Update(context.Background(), func(f *File) (changed bool, err error) {
		for name, agent := range f.Agents {
			for i := range agent.Allowlist {
				e := &agent.Allowlist[i]
				u, ok := uses[useKey{name, entryKey(e.Pattern, e.Argv)}]
				if !ok || e.ArgPattern != "" {
					continue
				}
				e.LastUsedAt, e.LastUsedCommand, e.LastResolvedPath = u.At.UnixMilli(), a.shown(u.Command), u.ResolvedPath
				changed = true
			}
		}
		return changed, nil
	})
	if err != nil {
		a.opts.Log.Warn("uses of the allowlist are not recorded", "err", err)
	}
}

// shown is a command as it may be kept: without secrets, and not too long.
func (a *Store) shown(command string) string {
	command = a.opts.Redact(command)
	if utf8.RuneCountInString(command) <= lastUsedMost {
		return command
	}
	return string([]rune(command)[:lastUsedMost-1]) + "…"
}

func entryKey(pattern string, argv []string) string {
	key := ""
	for _, part := range slices.Concat([]string{pattern}, argv) {
		key += part + "\x00"
	}
	return key
}
