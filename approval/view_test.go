package approval_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/approval"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/internal/viewtest"
)

// TestTextForgetsNothing: messages and the command line show the text of a view.
func TestTextForgetsNothing(t *testing.T) {
	viewtest.Check(t, (*approval.View).Text)
}

// notSeen are the texts of an approval that nobody needs to see before an answer, and why.
var notSeen = map[string]string{
	"State": "it waits", "ResolvedBy": "it waits", "Reason": "it waits", "Grant": "it waits",
	"Kind": "a command is seen as one", "Connection": "of a socket", "Device": "of a machine",
	"Request.CallID": "the caller's own number", "Request.Context": "in the sentences about grants", "Request.Workspace": "targets are whole paths",
	"Request.Surface": "told by the client's name", "Request.Exec.EnvHash": "in the digest", "Request.Exec.Plan": "replaced the request before",
	"Request.Proposals.Scope": "in the sentence of the proposal", "Request.Exec.Security": "the asker's mode", "Request.Exec.Ask": "the asker's mode",
}

// TestViewForgetsNothing: every text of an approval is seen, or is named above with the reason.
func TestViewForgetsNothing(t *testing.T) {
	r := &approval.Record{Request: &approval.Details{
		Claims: make([]approval.Claim, 1), Exec: &approval.ExecRequest{}, Findings: make([]toolward.Finding, 1), Outline: &display.Outline{Lines: make([]display.OutlineLine, 1)},
		Proposals: make([]approval.Proposal, 1), Preview: json.RawMessage(`{"requestpreview.":1}`),
	}, Allowed: []toolward.Decision{toolward.AllowAlways}}
	places := map[string]bool{}
	fill(reflect.ValueOf(r).Elem(), "", places)
	r.Request.Variables = nil // else the names that the asker's own request has are not looked at
	delete(places, "Request.Variables")
	places["Request.Preview"] = true
	ofProgram := []string{"Request.Claims.Name", "Request.Claims.Text", "Request.Exec.ResolvedPath", "Request.Exec.Thread"}
	for _, program := range []bool{false, true} {
		r.Request.ByProgram = program
		raw, err := json.Marshal(r.View())
		if err != nil {
			t.Fatal(err)
		}
		for place := range places {
			if notSeen[place] == "" && !strings.Contains(string(raw), word(place)) && (program || !slices.Contains(ofProgram, place)) {
				t.Errorf("%s is not seen", place)
			}
		}
	}
	if len(places) < 40 {
		t.Errorf("only %d texts were looked at", len(places))
	}
}

// fill sets every text to a word of its own.
func fill(v reflect.Value, place string, places map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem(), place, places)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[approval.Match]() {
			return // the sentence of a proposal says it
		}
		for i := range v.NumField() {
			fill(v.Field(i), strings.TrimPrefix(place+"."+v.Type().Field(i).Name, "."), places)
		}
	case reflect.String:
		v.SetString(word(place))
		places[place] = true
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fill(v.Index(i), place, places)
		}
	}
}

func word(place string) string { return strings.ToLower(strings.ReplaceAll(place, ".", "")) + "." }
