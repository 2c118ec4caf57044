package allowlist

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/internal/gatetest"
	"github.com/toolward/toolward/modes"
)

func TestFileVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "normalizeFile", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			File json.RawMessage
			Text string
		}
		gatetest.Decode(t, input, &in)
		content := []byte(in.File)
		if in.File == nil {
			content = []byte(in.Text)
		}
		file, _, err := Parse(content)
		if err != nil {
			return map[string]any{"corrupt": true}
		}
		agents, ids, assigned := map[string][]string{}, []string{}, false
		for name, a := range file.Agents {
			agents[name] = []string{}
			for _, e := range a.Allowlist {
				agents[name], ids = append(agents[name], e.Pattern), append(ids, e.ID)
				assigned = assigned || !strings.Contains(string(content), `"`+e.ID+`"`)
			}
		}
		socket := map[string]string{}
		if file.Socket.Path != "" {
			socket["path"] = file.Socket.Path
		}
		if file.Socket.Token != "" {
			socket["token"] = string(file.Socket.Token)
		}
		return map[string]any{"agents": agents, "ids": ids, "idsAssigned": assigned, "socket": socket, "corrupt": false}
	})
	gatetest.RunAsserted(t, "exec.json", "baseHash", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			Exists                bool
			CurrentHash, BaseHash string
		}
		gatetest.Decode(t, input, &in)
		switch err := CheckBase(in.Exists, in.CurrentHash, in.BaseHash); err {
		case nil:
			return map[string]any{"ok": true}
		case ErrBaseRequired:
			return map[string]any{"ok": false, "error": "required"}
		default:
			return map[string]any{"ok": false, "error": "changed"}
		}
	})
}

// TestParse are the ways in which a file can differ from what its owner meant.
func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"version as text":     {`{"version":"1"}`, "corrupt"},
		"no version":          {`{}`, "corrupt"},
		"version 2":           {`{"version":2}`, "corrupt"},
		"version 1.0":         {`{"version":1.0}`, "* main"},
		"a list":              {`[]`, "corrupt"},
		"empty":               {``, "corrupt"},
		"two documents":       {`{"version":1}{"version":1}`, "corrupt"},
		"a key twice":         {`{"version":1,"defaults":{"security":"full"},"defaults":{"security":"deny"}}`, "corrupt"},
		"defaults no object":  {`{"version":1,"defaults":"deny"}`, "corrupt"},
		"agents no object":    {`{"version":1,"agents":[]}`, "corrupt"},
		"an agent no object":  {`{"version":1,"agents":{"main":"deny"}}`, "corrupt"},
		"not UTF-8":           {"{\"version\":1,\"x\":\"\xff\"}", "corrupt"},
		"items of all kinds":  {`{"version":1,"agents":{"main":{"allowlist":["/a",7,null,{},{"pattern":""},{"pattern":" /b "},["/c"]]}}}`, "* main /a /b"},
		"a broken list":       {`{"version":1,"agents":{"main":{"allowlist":"/a"}}}`, "* main"},
		"unknown effect":      {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","effects":["read","root"]}]}}}`, "* main"},
		"effects no list":     {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","effects":"read"}]}}}`, "* main"},
		"effects null":        {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","effects":null}]}}}`, "* main"},
		"argv empty":          {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","argv":[]}]}}}`, "* main"},
		"argv with a number":  {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","argv":["a",1]}]}}}`, "* main"},
		"on the machine":      {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","host":"gateway"}]}}}`, "* main /a@gateway"},
		"another host":        {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","host":"node"},"/b"]}}}`, "* main /b"},
		"foreign restriction": {`{"version":1,"agents":{"main":{"allowlist":[{"pattern":"/a","argPattern":"^x$"},"/b"]}}}`, "* main /b"},
		"default and main":    {`{"version":1,"agents":{"default":{"allowlist":["/B","/c"]},"main":{"allowlist":["/a","/b"]}}}`, "* main /a /b /c"},
		"not another's":       {`{"version":1,"agents":{"x":{"allowlist":["/x"]},"*":{"allowlist":["/s"]}}}`, "* /s main"},
	} {
		file, _, err := Parse([]byte(c.content))
		got := "corrupt"
		if err == nil {
			patterns := map[string]string{}
			for _, e := range file.allowlist(MainAgent) {
				patterns[e.Agent] += " " + e.Pattern
				if e.Host != "" {
					patterns[e.Agent] += "@" + e.Host
				}
			}
			got = "*" + patterns["*"] + " main" + patterns["main"]
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s (%v)", name, got, c.want, err)
		}
	}
}

func TestInvalidModesClose(t *testing.T) {
	for _, value := range []string{`"open"`, `""`, `null`, `7`, `["full"]`, `"FULL"`, `" full"`} {
		file, _, err := Parse([]byte(`{"version":1,"defaults":{"security":` + value + `,"ask":` + value + `,"askFallback":` + value + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // and again after it was written
			m := modes.Merge(modes.Settings{Security: modes.SecurityFull, Ask: modes.AskOff}, file.settings("main"))
			if m.Security != modes.SecurityDeny || m.Ask != modes.AskAlways || m.AskFallback != modes.FallbackDeny {
				t.Errorf("%s: %+v", value, m)
			}
			content, err := file.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if file, _, err = Parse(content); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	file, problems, err := Parse([]byte(`{"version":1,"socket":{"path":"/s","token":"tok<en>"},"defaults":{"ask":"off"},"more":1,
		"agents":{"main":{"security":"full","x":2,"allowlist":[{"id":"K","pattern":"/a","effects":[],"argv":["/a","<&>"],"lastUsedAt":5}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"more: unknown key", "agents.main.x: unknown key"}; !reflect.DeepEqual(problems, want) {
		t.Errorf("problems %q", problems)
	}
	content, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "version": 1,
  "socket": {
    "path": "/s",
    "token": "tok<en>"
  },
  "defaults": {
    "ask": "off"
  },
  "agents": {
    "main": {
      "security": "full",
      "allowlist": [
        {
          "id": "K",
          "pattern": "/a",
          "effects": [],
          "argv": [
            "/a",
            "<&>"
          ],
          "lastUsedAt": 5
        }
      ]
    }
  }
}
`
	if string(content) != want {
		t.Errorf("got %s", content)
	}
	// Every other way to write it down is one that people, logs and other programs see.
	shown, err := json.Marshal(map[string]any{"file": file, "socket": file.Socket})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(shown), fmt.Sprint(file.Socket), fmt.Sprintf("%#v", file.Socket), fmt.Sprintf("%+v", *file)} {
		if strings.Contains(text, "tok<") || strings.Contains(text, `tok\u003c`) {
			t.Errorf("the token is shown: %s", text)
		}
	}
}

func TestAllowAndRemove(t *testing.T) {
	f := &File{}
	allow := func(want bool, e Entry) {
		t.Helper()
		if f.Allow("main", e, 9) != want {
			t.Errorf("%+v: want %v", e, want)
		}
	}
	allow(false, Entry{Pattern: "  "})
	allow(true, Entry{Pattern: " /a ", Effects: []string{"read"}})
	allow(false, Entry{Pattern: "/a", Effects: []string{"read"}})
	allow(true, Entry{Pattern: "/a", Effects: []string{"write"}})
	allow(true, Entry{Pattern: "/a", Argv: []string{"/a", "x"}})
	allow(false, Entry{Pattern: "/a", Argv: []string{"/a", "x"}})
	allow(true, Entry{Pattern: "/b"})
	allow(false, Entry{Pattern: "/b", Effects: []string{"network"}}) // it may do that already
	list := f.Agents["main"].Allowlist
	if len(list) != 3 || !slices.Equal(list[0].Effects, []string{"read", "write"}) || list[0].LastUsedAt != 9 || len(list[0].ID) != 36 || list[2].Effects != nil {
		t.Errorf("%+v", list)
	}
	last := list[2].ID
	if f.Remove("main", "/x") || f.Remove("main", "") || f.Remove("other", "/a") || !f.Remove("main", " /a ") || !f.Remove("main", last) || f.Agents["main"] != nil {
		t.Errorf("%+v", f.Agents)
	}
}

func TestParseStrict(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{`{"version":1,"extra":1}`, "extra: unknown key"},
		{`{"version":1,"defaults":{"security":"open"}}`, `defaults.security: "open" is none of deny, allowlist, full`},
		{`{"version":1,"agents":{"x":{"ask":"never"}}}`, `agents.x.ask: "never" is none of always, on-miss, off`},
		{`{"version":1,"agents":{"x":{"allowlist":["/a",{}]}}}`, "agents.x.allowlist[1]: has no pattern"},
		{`{"version":1,"agents":{"x":{"allowlist":[{"pattern":"/a","sudo":true}]}}}`, "agents.x.allowlist[0].sudo: unknown key"},
		{`{"version":1,"socket":{"token":5}}`, "socket.token: is not a text"},
		{`{"version":1,"agents":{"x":{"allowlist":[{"pattern":"/a","lastUsedAt":-1}]}}}`, "agents.x.allowlist[0].lastUsedAt: is not a time in milliseconds"},
	} {
		if _, err := ParseStrict([]byte(c.content)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.content, err, c.want)
		}
	}
	if _, err := ParseStrict([]byte(`{"version":1,"defaults":{"security":"deny"},"agents":{"*":{"allowlist":["/a"]}}}`)); err != nil {
		t.Error(err)
	}
}

// FuzzFile: no content panics or loosens, and what is written means the same when it is read again.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"defaults":{"security":"full","ask":"off"},"agents":{"default":{"ask":"always"},"*":{"allowlist":["/a",{"pattern":"/b","argv":["b"],"effects":[]}]}}}`))
	f.Add([]byte(`{"version":1,"socket":{"path":" ","token":"x"},"agents":{"main":{"security":null,"autoAllowSkills":1,"allowlist":[{"pattern":"/c","lastUsedAt":1e3,"argPattern":"x"}]}}}`))
	f.Add([]byte(`{`))
	config := modes.Settings{Security: modes.SecurityAllowlist, Ask: modes.AskOnMiss}
	f.Fuzz(func(t *testing.T, content []byte) {
		s := &Snapshot{File: &File{}, accepted: &File{}}
		if file, _, err := Parse(content); err != nil {
			s.Corrupt = err
		} else {
			s.File, s.accepted = file, file
		}
		for _, agent := range []string{"", "main", "x", "*", "default"} {
			m := s.Modes(config, agent)
			if modes.SecurityAllowlist.StricterThan(m.Security) || modes.AskOnMiss.StricterThan(m.Ask) {
				t.Fatalf("%s loosens to %+v", content, m)
			}
			if s.Corrupt != nil && (m.Security != modes.SecurityDeny || len(s.Allowlist(agent)) > 0) {
				t.Fatalf("%s is corrupt and allows", content)
			}
		}
		if s.Corrupt != nil {
			return
		}
		written, err := s.File.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, problems, err := Parse(written)
		for _, problem := range problems {
			if !strings.Contains(problem, "argPattern") {
				t.Fatalf("%s: written with the problem %s", written, problem)
			}
		}
		if err != nil || !reflect.DeepEqual(again, s.File) {
			t.Fatalf("%s\nbecame\n%s\n%v", content, written, err)
		}
	})
}

func TestMergePolicyVectors(t *testing.T) {
	gatetest.RunAsserted(t, "exec.json", "mergePolicy", func(t *testing.T, input json.RawMessage) map[string]any {
		var in struct {
			Config             modes.Settings
			File               json.RawMessage
			FileState, AgentID string
		}
		gatetest.Decode(t, input, &in)
		s := &Snapshot{File: &File{}, accepted: &File{}}
		if in.File != nil {
			s.File, _, s.Corrupt = Parse(in.File)
		}
		if in.FileState == "corrupt" {
			_, _, s.Corrupt = Parse([]byte("{"))
		}
		s.accepted = s.File
		m, skills := s.Modes(in.Config, in.AgentID), s.Settings(in.AgentID).AutoAllowSkills
		patterns := []string{}
		for _, e := range s.Allowlist(in.AgentID) {
			patterns = append(patterns, e.Pattern)
		}
		return map[string]any{
			"security": m.Security, "ask": m.Ask, "askFallback": m.AskFallback, "autoAllowSkills": skills != nil && *skills, "allowlist": patterns,
		}
	})
}
