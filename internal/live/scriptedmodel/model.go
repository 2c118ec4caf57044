// Package scriptedmodel is a model server without a model: it speaks the
// Anthropic Messages wire (streaming and not) and answers from a script, so
// that a real client can be driven through exactly the tool calls a test
// wants, offline and without an account. What the client sends back, tool
// results above all, is kept for the test to look at.
package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// ToolUse is one tool call the scripted model makes. Input is marshaled as
// JSON, or sent as it is when it is a json.RawMessage.
type ToolUse struct {
	ID    string
	Name  string
	Input any
}

// Reply is one answer of the scripted model: some text, some tool calls, or both.
type Reply struct {
	Text  string
	Calls []ToolUse
	// InputTokens is the context size the reply reports as its usage; 0 means 10.
	InputTokens int
}

// Request is one request of the client to its model, decoded as far as tests need.
type Request struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []Message       `json:"messages"`
	Tools    []Tool          `json:"tools"`
}

// Tool is one tool the client offers its model.
type Tool struct {
	Name        string          `json:"name"`
	Type        string          `json:"type,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Message is one message of the conversation; Content is a string or an array of blocks.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// ToolResult is what the client told its model about one tool call.
type ToolResult struct {
	ID      string
	Text    string
	IsError bool
}

// Script answers the requests of one client. It is called with every request
// that offers tools; requests without tools (titles, summaries) get a fixed text.
type Script func(Request) Reply

// Server is a running scripted model.
type Server struct {
	URL string

	http *httptest.Server
	mu   sync.Mutex
	reqs []Request
}

// Start runs a scripted model on a loopback port until Close.
func Start(script Script) *Server {
	s := &Server{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) { s.messages(w, r, script) })
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"input_tokens":10}`)
	})
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

// Requests returns the requests with tools that arrived so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.reqs...)
}

// Result finds what the client reported for the tool call with this id, in any request.
func (s *Server) Result(id string) (ToolResult, bool) {
	for _, r := range s.Requests() {
		for _, res := range r.Results() {
			if res.ID == id {
				return res, true
			}
		}
	}
	return ToolResult{}, false
}

// Steps is the script that gives these replies one after the other, then the text "done".
func Steps(replies ...Reply) Script {
	var mu sync.Mutex
	next := 0
	return func(Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		if next >= len(replies) {
			return Reply{Text: "done"}
		}
		next++
		return replies[next-1]
	}
}

// Results lists the tool results this request carries.
func (r Request) Results() []ToolResult {
	var out []ToolResult
	for _, m := range r.Messages {
		var blocks []struct {
			Type      string          `json:"type"`
			ToolUseID string          `json:"tool_use_id"`
			Content   json.RawMessage `json:"content"`
			IsError   bool            `json:"is_error"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, ToolResult{ID: b.ToolUseID, Text: blockText(b.Content), IsError: b.IsError})
			}
		}
	}
	return out
}

func blockText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return string(raw)
	}
	var all strings.Builder
	for _, b := range blocks {
		all.WriteString(b.Text)
	}
	return all.String()
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request, script Script) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var req Request
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := Reply{Text: "ok"}
	if len(req.Tools) > 0 {
		s.mu.Lock()
		s.reqs = append(s.reqs, req)
		s.mu.Unlock()
		reply = script(req)
	}
	if req.Stream {
		stream(w, req.Model, reply)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(whole(req.Model, reply))
}

// stream writes the reply as the server-sent events a streaming client expects.
func stream(w http.ResponseWriter, model string, reply Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		raw, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
	}
	start := envelope(model, reply)
	start["content"] = []any{}
	start["stop_reason"] = nil
	send("message_start", map[string]any{"message": start})
	index := 0
	if reply.Text != "" {
		send("content_block_start", map[string]any{"index": index, "content_block": map[string]any{"type": "text", "text": ""}})
		send("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "text_delta", "text": reply.Text}})
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	for _, c := range reply.Calls {
		input, _ := json.Marshal(c.Input)
		send("content_block_start", map[string]any{"index": index, "content_block": map[string]any{
			"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{},
		}})
		send("content_block_delta", map[string]any{"index": index, "delta": map[string]any{
			"type": "input_json_delta", "partial_json": string(input),
		}})
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": reply.stopReason(), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 5},
	})
	send("message_stop", map[string]any{})
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func whole(model string, reply Reply) map[string]any {
	msg := envelope(model, reply)
	content := []any{}
	if reply.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": reply.Text})
	}
	for _, c := range reply.Calls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input})
	}
	msg["content"] = content
	msg["stop_reason"] = reply.stopReason()
	return msg
}

func envelope(model string, reply Reply) map[string]any {
	tokens := reply.InputTokens
	if tokens == 0 {
		tokens = 10
	}
	return map[string]any{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": tokens, "output_tokens": 1,
			"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		},
	}
}

func (r Reply) stopReason() string {
	if len(r.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}
