package schema

import (
	"encoding/json"
	"testing"
)

func TestFileParams(t *testing.T) {
	for _, c := range []struct{ name, tool, in, want string }{
		{"alias", "read", `{"file_path":"a"}`, `{"path":"a"}`},
		{"both, different", "read", `{"path":"a","file_path":"b"}`, ""},
		{"alias in other case", "read", `{"path":"a","File_Path":"b"}`, ""},
		{"content may be empty", "write", `{"path":"a","content":""}`, `{"content":"","path":"a"}`},
		{"content must be there", "write", `{"path":"a"}`, ""},
		{"content must be text", "write", `{"path":"a","content":5}`, ""},
		{"new text may be empty", "edit", `{"path":"a","oldText":"x","new_string":""}`, `{"newText":"","oldText":"x","path":"a"}`},
		{"old text may not", "edit", `{"path":"a","oldText":" ","newText":"x"}`, ""},
		{"blocks and text are the same", "edit", `{"path":"a","oldText":"xy","old_string":[{"text":"x"},"y"],"newText":"z"}`, `{"newText":"z","oldText":"xy","path":"a"}`},
		{"nested blocks", "write", `{"path":"a","content":{"content":[{"parts":["x",{"type":"Text","value":"y"}]},[["z"]]]}}`, `{"content":"xyz","path":"a"}`},
		{"six levels", "write", `{"path":"a","content":[[[[[["x"]]]]]]}`, `{"content":"x","path":"a"}`},
		{"seven levels", "write", `{"path":"a","content":[[[[[[["x"]]]]]]]}`, ""},
		{"block without text", "write", `{"path":"a","content":[{"type":"text","text":"x"},{"type":"image","data":"…"}]}`, ""},
		{"no blocks", "write", `{"path":"a","content":[]}`, ""},
		{"path is never blocks", "write", `{"path":["a"],"content":"x"}`, ""},
		{"aliases belong to their tool", "read", `{"path":"a","old_string":"x"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := fileSchema(t, c.tool).Decode([]byte(c.in))
			if (err != nil) != (c.want == "") || string(v.Canonical) != c.want {
				t.Errorf("got %s, %v; want %q", v.Canonical, err, c.want)
			}
		})
	}
	if _, ok := FileParams("exec"); ok {
		t.Error("exec is not a file tool")
	}
}

func TestShown(t *testing.T) {
	params, _ := FileParams("edit")
	shown, err := params.Shown(json.RawMessage(fileSchemas["edit"]))
	if err != nil {
		t.Fatal(err)
	}
	text := `{"type":"string"}`
	want := `{"additionalProperties":false,"properties":{"file_path":` + text + `,"newText":` + text + `,"new_string":` + text +
		`,"oldText":` + text + `,"old_string":` + text + `,"path":` + text + `,"replaceAll":{"type":"boolean"}},"type":"object"}`
	if string(shown) != want {
		t.Errorf("got  %s\nwant %s", shown, want)
	}
}
