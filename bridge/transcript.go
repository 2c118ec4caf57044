package bridge

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// contextUse is how full a conversation is, as its transcript says.
type contextUse struct {
	tokens    int64 // -1: the transcript does not say
	model     string
	compacted bool // the history was replaced by a summary since the last answer of the model
	fresh     bool // the whole transcript holds no answer of the model yet
}

// Bounds of reading a transcript: its end is read in growing parts until an answer of the model is found.
const (
	firstTail = 64 << 10
	lastTail  = 4 << 20
)

// usageCache remembers transcripts that have not changed since they were read.
type usageCache struct {
	mu    sync.Mutex
	known map[string]cachedUse
}

type cachedUse struct {
	size int64
	time time.Time
	use  contextUse
}

const maxTranscripts = 512

// of reads how full the conversation of a transcript is. ok is false when it has no answer of the model yet: the
// client writes behind, so that at the first call of a session there often is none.
func (u *usageCache) of(path string) (use contextUse, ok bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return contextUse{tokens: -1}, false
	}
	u.mu.Lock()
	known, have := u.known[path]
	u.mu.Unlock()
	if have && known.size == info.Size() && known.time.Equal(info.ModTime()) {
		return known.use, !known.use.fresh
	}
	use = readUse(path, info.Size())
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil || len(u.known) >= maxTranscripts {
		u.known = map[string]cachedUse{}
	}
	u.known[path] = cachedUse{info.Size(), info.ModTime(), use}
	return use, !use.fresh
}

// readUse looks for the last answer of the model from the end of the file.
func readUse(path string, size int64) contextUse {
	f, err := os.Open(path)
	if err != nil {
		return contextUse{tokens: -1}
	}
	defer f.Close()
	for length := int64(firstTail); ; length *= 8 {
		length = min(length, size, lastTail)
		tail := make([]byte, length)
		if _, err := f.ReadAt(tail, size-length); err != nil && err != io.EOF {
			return contextUse{tokens: -1}
		}
		use, found := lastUse(tail, length == size)
		use.fresh = !found && !use.compacted && length == size
		if found || length == size || length == lastTail {
			return use
		}
	}
}

// lastUse reads the lines of the tail from the end. Unless the tail is the whole file its first line is a part of
// one and is left out.
func lastUse(tail []byte, whole bool) (use contextUse, found bool) {
	use.tokens = -1
	for len(tail) > 0 {
		tail = bytes.TrimSuffix(tail, []byte("\n"))
		start := bytes.LastIndexByte(tail, '\n') + 1
		if start == 0 && !whole {
			break
		}
		line := tail[start:]
		tail = tail[:start]
		if bytes.Contains(line, []byte(`"compact_boundary"`)) {
			use.compacted = true
		}
		if tokens, model, ok := answerUse(line); ok {
			use.tokens, use.model = tokens, model
			return use, true
		}
	}
	return use, false
}

// answerUse reads the usage of one line, if it is an answer of the model.
func answerUse(line []byte) (tokens int64, model string, ok bool) {
	if !bytes.Contains(line, []byte(`"usage"`)) || !bytes.Contains(line, []byte(`"assistant"`)) {
		return 0, "", false
	}
	var entry struct {
		Type    string `json:"type"`
		Message struct {
			Model string `json:"model"`
			Usage *struct {
				Input   int64 `json:"input_tokens"`
				Created int64 `json:"cache_creation_input_tokens"`
				Read    int64 `json:"cache_read_input_tokens"`
			} `json:"usage"`
		} `json:"message"`
	}
	err := json.Unmarshal(line, &entry)
	switch {
	case entry.Type != "assistant":
		return 0, "", false // a tool's result that quotes one, or a line that is being written
	case err != nil:
		return -1, entry.Message.Model, true // numbers that are none
	case entry.Message.Usage == nil:
		return 0, "", false
	}
	if strings.HasPrefix(entry.Message.Model, "<") {
		return 0, "", false // "<synthetic>": the client's own words, with a usage of nothing
	}
	use := entry.Message.Usage
	for _, n := range []int64{use.Input, use.Created, use.Read} {
		if n < 0 || n > 1<<40 {
			return -1, entry.Message.Model, true
		}
	}
	return use.Input + use.Created + use.Read, entry.Message.Model, true
}

// defaultWindow is the context window of models that we do not know: the smallest in use, so that a mistake makes
// a session tenser.
const defaultWindow = 200_000

// windows are the context windows of models by the beginning of their names.
var windows = []struct {
	prefix string
	tokens int64
}{
	{"claude-opus-5", 1_000_000},
}

// windowOf gives the context window of a model.
func windowOf(model string, configured map[string]int64) int64 {
	if tokens := configured[model]; tokens > 0 {
		return tokens
	}
	if strings.HasSuffix(model, "[1m]") {
		return 1_000_000
	}
	for _, w := range windows {
		if strings.HasPrefix(model, w.prefix) {
			return w.tokens
		}
	}
	return defaultWindow
}

// agentTranscript is where Claude Code keeps the transcript of a sub-agent.
func agentTranscript(main, session, agent string) string {
	return filepath.Join(filepath.Dir(main), session, "subagents", "agent-"+agent+".jsonl")
}
