package plugin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test program be a plug-in's program: "<test> plugin <behavior> [arguments]".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		bePlugin(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// asked is a request as a plug-in sees it.
type asked struct {
	ID, Hook string
	Event    struct {
		ToolName string
		Params   map[string]json.RawMessage
		Status   string
		Error    string
		Result   json.RawMessage
	}
	Ctx json.RawMessage
}

// bePlugin behaves in one way until its input ends.
func bePlugin(behavior string, arguments []string) {
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	switch behavior {
	case "crashes at start":
		os.Exit(3)
	case "talks first":
		say("plug-in 1.0 is ready")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var a asked
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(4)
		}
		switch behavior {
		case "answers": // what stands in the parameter "answer", or in the first argument
			answer := a.Event.Params["answer"]
			if len(arguments) > 0 {
				answer = json.RawMessage(arguments[0])
			}
			if a.Hook != "before_tool_call" || answer == nil {
				answer = json.RawMessage("null")
			}
			say(`{"id":%q,"result":%s}`, a.ID, answer)
		case "notes": // every request, in the file of the first argument
			f, err := os.OpenFile(arguments[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				fmt.Fprintf(f, "%s\n", lines.Bytes())
				f.Close()
			}
			say(`{"id":%q}`, a.ID)
		case "environment":
			text, _ := json.Marshal(strings.Join(os.Environ(), " "))
			say(`{"id":%q,"result":{"block":true,"blockReason":%s}}`, a.ID, text)
		case "reports an error":
			say(`{"id":%q,"error":"the database is down"}`, a.ID)
		case "hangs":
			time.Sleep(time.Hour)
		case "answers late":
			time.Sleep(400 * time.Millisecond)
			say(`{"id":%q,"result":{"params":{"path":"late"}}}`, a.ID)
		case "crashes":
			os.Exit(3)
		case "panics":
			panic("out of order")
		case "answers garbage":
			say("yes, go ahead")
		case "answers half":
			say(`{"id":%q,"result":`, a.ID)
		case "answers broken text":
			say("{\"id\":%q,\"result\":{\"blockReason\":\"\xff\"}}", a.ID)
		case "answers twice in one":
			say(`{"id":%q,"result":{"block":true,"block":false}}`, a.ID)
		case "answers another":
			say(`{"id":"9%s","result":null}`, a.ID)
		case "answers in advance":
			say(`{"id":%q}`, a.ID)
			say(`{"id":"2"}`)
		case "answers a number":
			say(`{"id":%s}`, a.ID)
		case "floods":
			long := strings.Repeat("x", 1<<20)
			for {
				fmt.Print(long)
			}
		case "floods lines":
			for {
				say(`{"id":"77"}`)
			}
		case "floods errors":
			long := strings.Repeat("sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789 ", 1000)
			for range 100 {
				fmt.Fprintln(os.Stderr, long)
			}
			say(`{"id":%q}`, a.ID)
		case "closes its output":
			os.Stdout.Close()
			time.Sleep(time.Hour)
		case "forks":
			child := exec.Command("/bin/sleep", "3600")
			child.Stdout = os.Stdout
			if err := child.Start(); err == nil {
				os.WriteFile(arguments[0], fmt.Append(nil, child.Process.Pid), 0o600)
			}
			time.Sleep(time.Hour)
		case "forks and ends":
			child := exec.Command("/bin/sleep", "3600")
			child.Stdout = os.Stdout
			if err := child.Start(); err == nil {
				os.WriteFile(arguments[0], fmt.Append(nil, child.Process.Pid), 0o600)
			}
			return
		}
	}
}
