package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolward/toolward/schema"
)

// Limits of what a foreign server may say about its tools.
const (
	maxListBytes       = 8 << 20   // of all pages of one list
	maxDefinitionBytes = 256 << 10 // of one tool
	maxDefinitions     = 1000      // of one server
	maxParameters      = 256       // properties of one object in a schema
	maxDescription     = 8000      // characters of one description that are shown
)

// nameSeparator stands between the id of a server and the name that the server gives its tool. No id contains it, so
// that no tool of one server can have the name of another's.
const nameSeparator = "__"

// Definition is a tool as a foreign server defines it, made ready to be one of Toolward's.
type Definition struct {
	Name        string          // in Toolward: <server>__<tool>, lower case
	Native      string          // what the server itself calls it
	Description string          // for models and people: what would hide is visible, what is too long is cut
	Schema      json.RawMessage // of the arguments; as the server wrote it, but for texts, which are shown like Description
	ReadOnly    bool            // the server says that the tool changes nothing, which is a claim
	Digest      string          // SHA-256 over the canonical form of all that the server says about the tool
	Odd         []string        // what people should look at before they accept it
}

// Rejected is a tool of a foreign server that cannot be one of Toolward's.
type Rejected struct {
	Native string // as the server calls it, or "" if it does not say
	Reason string
}

// readPages takes the answers to tools/list apart into definitions as they came.
func readPages(pages []json.RawMessage) ([]json.RawMessage, error) {
	var all []json.RawMessage
	size := 0
	for _, page := range pages {
		if size += len(page); size > maxListBytes {
			return nil, fmt.Errorf("the list of tools is longer than %d bytes", maxListBytes)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(page, &fields); err != nil {
			return nil, fmt.Errorf("the list of tools is not a JSON object: %w", err)
		}
		var tools []json.RawMessage
		if err := json.Unmarshal(fields["tools"], &tools); err != nil {
			return nil, errors.New(`the list of tools has no array "tools"`)
		}
		if all = append(all, tools...); len(all) > maxDefinitions {
			return nil, fmt.Errorf("the server lists more than %d tools", maxDefinitions)
		}
	}
	return all, nil
}

// readDefinition makes a definition of what a server says about one tool. checkName has the last word on the name.
// Native is set even if it fails, as far as it is known.
func readDefinition(server string, raw json.RawMessage, checkName func(name, server string) error) (d Definition, err error) {
	if len(raw) > maxDefinitionBytes {
		return d, fmt.Errorf("the definition is longer than %d bytes", maxDefinitionBytes)
	}
	// Strictly and once: of two equal keys a client may read the one that was not checked here.
	canonical, err := schema.Canonicalize(raw)
	if err != nil {
		return d, fmt.Errorf("the definition: %w", err)
	}
	sum := sha256.Sum256(canonical)
	d.Digest = hex.EncodeToString(sum[:])
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return d, errors.New("the definition is not an object")
	}
	if err := textField(fields, "name", &d.Native); err != nil {
		return d, err
	}
	if d.Name, err = toolName(server, d.Native, checkName); err != nil {
		return d, err
	}
	var description string
	if err := textField(fields, "description", &description); err != nil {
		return d, err
	}
	w := words{}
	d.Description = w.show("the description", description)
	if d.Schema, err = w.schema(fields["inputSchema"]); err != nil {
		return d, err
	}
	if _, err := schema.Compile(d.Schema, schema.Options{Foreign: true}); err != nil {
		return d, err
	}
	d.ReadOnly, d.Odd = readOnlyHint(fields["annotations"]), w.odd
	return d, nil
}

// textField reads a text that may be absent.
func textField(fields map[string]json.RawMessage, name string, text *string) error {
	raw, ok := fields[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, text); err != nil {
		return fmt.Errorf("%q is not a text", name)
	}
	return nil
}

// toolName gives a foreign tool its name in Toolward. A server's own spelling counts but for case; characters beyond
// ASCII and spaces are refused before case is folded, because folding and trimming would turn look-alikes such as the
// Kelvin sign or "read " into other names.
func toolName(server, native string, checkName func(name, server string) error) (string, error) {
	if native == "" {
		return "", errors.New("the tool has no name")
	}
	for i := range len(native) {
		if c := native[i]; c <= ' ' || c >= 0x7f {
			return "", fmt.Errorf("name %+q: has a space, a control character or a character beyond ASCII", short(native))
		}
	}
	name := server + nameSeparator + strings.ToLower(native)
	return name, checkName(name, server)
}

// short bounds a text that a server chose before it is repeated.
func short(text string) string {
	const most = 80
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// readOnlyHint reads annotations.readOnlyHint; anything but true is no.
func readOnlyHint(raw json.RawMessage) bool {
	var annotations map[string]json.RawMessage
	return json.Unmarshal(raw, &annotations) == nil && string(annotations["readOnlyHint"]) == "true"
}

// checkServer accepts what the id of a server may look like. It begins the names of the server's tools, and those
// must not pass for names that clients make ("mcp__…") or for Toolward's own.
func checkServer(id string) error {
	ok := id != "" && len(id) <= 64 && id != "mcp" && id != "toolward" &&
		!strings.Contains(id, nameSeparator) && !strings.HasSuffix(id, "_") && id[0] != '_' && id[0] != '-'
	for i := range len(id) {
		c := id[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf(`server id %+q: use up to 64 lower-case letters, digits, - and single _ between them; not "mcp" or "toolward"`, short(id))
	}
	return nil
}
