package schema

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// Limits of a [Cache]. They hold the tools of many servers, and stop one that changes its schemas all the time from
// filling memory.
const (
	maxCached      = 4096
	maxCachedBytes = 32 << 20
)

// Cache remembers what [Prepare] made of schemas, failures too, so that a hostile schema costs its time once. The
// zero Cache is ready for use, by several goroutines at once.
type Cache struct {
	mu    sync.Mutex
	made  map[cacheKey]prepared
	order []cacheKey // oldest first
	bytes int
}

type cacheKey struct {
	dialect dialect
	digest  [sha256.Size]byte
}

type prepared struct {
	schema json.RawMessage
	err    error
}

// Prepare is the function [Prepare], from memory where possible. The result is shared and must not be changed.
func (c *Cache) Prepare(provider string, original json.RawMessage) (json.RawMessage, error) {
	key := cacheKey{dialect: dialectOf(provider), digest: sha256.Sum256(original)}
	c.mu.Lock()
	known, ok := c.made[key]
	c.mu.Unlock()
	if ok {
		return known.schema, known.err
	}
	schema, err := prepare(key.dialect, original)
	c.keep(key, prepared{schema: schema, err: err})
	return schema, err
}

func (c *Cache) keep(key cacheKey, p prepared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.made[key]; twice {
		return
	}
	if c.made == nil {
		c.made = map[cacheKey]prepared{}
	}
	c.made[key] = p
	c.order = append(c.order, key)
	c.bytes += len(p.schema)
	for len(c.order) > maxCached || c.bytes > maxCachedBytes {
		c.bytes -= len(c.made[c.order[0]].schema)
		delete(c.made, c.order[0])
		c.order = c.order[1:]
	}
}
