package attacks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/audit"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/policy"
	"github.com/toolward/toolward/policy/visible"
	"github.com/toolward/toolward/store"
)

// judgeIntegrity judges one condition under which the gate itself must stay sound.
func judgeIntegrity(t *testing.T, c *attack) (outcome, error) {
	for subject, judge := range map[string]func(*testing.T, *attack, fields) (outcome, error){
		"policy": judgePolicy, "config": judgeConfig, "audit": judgeAudit, "hooks-runner": judgePlugins, "client-hook-adapter": judgeAdapter,
		"owner": judgeOwner, "log": judgeLog, "unix-socket": judgeSocket,
	} {
		if c.Attempt.has(subject) {
			if err := c.Attempt.only("gate.integrity", subject); err != nil {
				return outcome{}, err
			}
			return judge(t, c, c.Attempt.object(subject))
		}
	}
	if c.Attempt.has("bind") {
		return judgeBind(t, c)
	}
	return outcome{}, unsupported{"gate.integrity about " + strings.Join(sorted(c.Attempt), ", ")}
}

// judgePolicy: a policy file that cannot be read, or lists and models that are odd.
func judgePolicy(t *testing.T, c *attack, what fields) (outcome, error) {
	w := newWorld(t)
	switch {
	case what.has("file"):
		return w.judgeFile(what)
	case what.has("provider"):
		return w.judgeProvider(what)
	case what.has("plugin"):
		return w.judgePlugin(what)
	}
	// Anything else is taken for settings of tools as they stand.
	w.config["tools"] = map[string]any(what)
	o, err := w.judgeLoad(c)
	if _, sound := err.(unsupported); !sound {
		return o, err
	}
	w.compile()
	return w.probe(c, what.list("deny")), nil
}

// probe tries what a policy in force denies, by whatever name it does; without a list it tries a command.
func (w *world) probe(c *attack, denies []string) outcome {
	caller, _ := w.main("s1")
	if len(denies) == 0 {
		return w.outcome(w.admit(w.newCall(caller, "exec", map[string]any{"command": "id"})))
	}
	o := outcome{answer: denied}
	if c.Want == string(contained) {
		o.answer = contained
	}
	for _, tool := range visible.ExpandGroups(denies) {
		w.watch.time(func() {
			if w.find(caller, tool) != nil {
				o.answer, o.why = harmful, tool+" is there although it is denied"
			}
		})
	}
	o.took = w.watch.longest
	return o
}

// judgeLoad: the configuration is refused, or it is in force.
func (w *world) judgeLoad(c *attack) (o outcome, err error) {
	w.watch.time(func() { _, err = w.load() })
	o = outcome{answer: denied, took: w.watch.longest}
	if err != nil {
		o.why = err.Error()
		return o, nil
	}
	if c.Want != string(allowed) {
		return o, unsupported{"a configuration that is sound, of which nothing is tried"}
	}
	w.compile()
	return outcome{answer: allowed, took: w.watch.longest}, nil
}

// sick are contents of a configuration file that no gateway may start on, by what the corpus calls them.
var sick = map[string]string{
	"malformed JSON": `{"tools": {"deny": ["exec"]`, "malformed": `{"tools":`, "truncated": `{"tools": {"de`, "not json": "deny everything",
	"binary": "\x00\x01\xff\xfe", "array": `["exec"]`, "null": "null", "duplicate keys": `{"tools":{"deny":["exec"]},"tools":{}}`,
	"unknown key": `{"tols":{"deny":["exec"]}}`, "wrong type": `{"tools":{"deny":"exec"}}`,
}

// judgeFile: the file is refused, so that a gateway does not start and a running one keeps its policy; and a gateway
// that never got a policy refuses every call.
func (w *world) judgeFile(what fields) (outcome, error) {
	if err := what.only("policy", "file"); err != nil {
		return outcome{}, err
	}
	path := filepath.Join(w.stateDir, config.FileName)
	content, known := sick[what.text("file")]
	switch {
	case known:
		must(w.t, os.WriteFile(path, []byte(content), 0o600))
	case what.text("file") == "unreadable":
		must(w.t, os.Mkdir(path, 0o700)) // also for root
	case what.text("file") == "oversized":
		must(w.t, os.WriteFile(path, make([]byte, config.MaxSize+1), 0o600))
	default:
		return outcome{}, unsupported{"a policy file that is " + what.text("file")}
	}
	var err error
	w.watch.time(func() { _, err = config.Load(path, config.CheckPolicy(w.tools(), policy.Surroundings{})) })
	if err == nil {
		return outcome{answer: allowed, why: "the file is taken", took: w.watch.longest}, nil
	}
	w.policy.Swap(nil)
	caller, _ := w.main("s1")
	return w.outcome(w.admit(w.newCall(caller, "read", map[string]any{"path": "README.md"}))), nil
}

// judgeProvider: however a model's provider is written, in the configuration and by the caller, the same rule counts.
func (w *world) judgeProvider(what fields) (outcome, error) {
	if err := what.only("policy", "provider", "alias"); err != nil {
		return outcome{}, err
	}
	w.set([]string{"exec"}, "tools", "byProvider", what.text("provider"), "deny")
	w.compile()
	spelled := []string{what.text("provider"), strings.TrimSpace(what.text("provider")), strings.ToUpper(what.text("provider")), what.text("alias")}
	o := outcome{answer: contained}
	for _, provider := range spelled {
		caller, _ := w.main("s1")
		caller.Provider, caller.Model = provider, "some-model"
		w.watch.time(func() {
			if w.find(caller, "exec") != nil {
				o.answer, o.why = harmful, fmt.Sprintf("provider %q escapes the rule", provider)
			}
		})
	}
	o.took = w.watch.longest
	return o, nil
}

// judgePlugin: an allow list that names only what a disabled plug-in would bring, at every place where such a list can
// stand. Whether it is ignored or leaves nothing: what is denied stays denied.
func (w *world) judgePlugin(what fields) (outcome, error) {
	if err := what.only("policy", "plugin", "allow", "deny"); err != nil {
		return outcome{}, err
	}
	switch what.text("plugin") {
	case "disabled":
	case "enabled":
		w.plugins = what.list("allow")
	default:
		return outcome{}, unsupported{"a plug-in that is " + what.text("plugin")}
	}
	denies := append([]string{"exec", "write"}, what.list("deny")...)
	o := outcome{answer: contained}
	for _, place := range [][]string{
		{"tools"}, {"tools", "byProvider", "openai"}, {"channels", "slack", "groups", "c1", "tools"},
	} {
		for _, unmatched := range []string{"strip", "closed"} {
			w.config = map[string]any{}
			w.set(denies, "tools", "deny")
			w.set(unmatched, "tools", "unmatchedAllowlist")
			w.set(what["allow"], append(slices.Clone(place), "allow")...)
			w.compile()
			caller, _ := w.main("slack:group:c1")
			caller.Provider, caller.Model = "openai", "some-model"
			for _, tool := range denies {
				w.watch.time(func() {
					if w.find(caller, tool) != nil {
						o.answer, o.why = harmful, fmt.Sprintf("%s comes back through %v", tool, place)
					}
				})
			}
		}
	}
	o.took = w.watch.longest
	return o, nil
}

// judgeConfig: settings under dotted keys, in the one file that there is.
func judgeConfig(t *testing.T, c *attack, what fields) (outcome, error) {
	w := newWorld(t)
	for key, value := range what {
		w.set(value, strings.Split(key, ".")...)
	}
	return w.judgeLoad(c)
}

// judgeFullDisk: once a decision cannot be recorded, no call runs. There may be room for a few records more.
func (w *world) judgeFullDisk() (outcome, error) {
	ctx := context.Background()
	if err := w.db.Write(ctx, true, func(tx *store.Tx) error {
		_, err := tx.Exec(`PRAGMA max_page_count = 1`) // not below what is in use
		return err
	}); err != nil {
		return outcome{}, err
	}
	caller, _ := w.main("s1")
	ran := 0
	for range 1000 {
		a := w.admit(w.newCall(caller, "read", map[string]any{"path": "README.md"}))
		if a.answer != allowed {
			records, err := audit.Query(ctx, w.records(), audit.Filter{Type: audit.TypeDecision, Limit: audit.MaxLimit})
			if err != nil {
				return outcome{}, err
			}
			if len(records) < ran {
				return outcome{answer: harmful, why: fmt.Sprintf("%d calls ran on %d records", ran, len(records))}, nil
			}
			return w.outcome(a), nil
		}
		ran++
	}
	return outcome{answer: allowed, why: "1000 calls ran on a full disk", took: w.watch.longest}, nil
}

func (w *world) records() audit.Source {
	records, err := w.db.Audit(context.Background())
	must(w.t, err)
	return records
}

// judgeAudit: a record that somebody changed is noticed.
func judgeAudit(t *testing.T, c *attack, what fields) (outcome, error) {
	if err := what.only("audit", "edit-middle", "disk-full"); err != nil {
		return outcome{}, err
	}
	w := newWorld(t)
	if what.flag("disk-full") {
		return w.judgeFullDisk()
	}
	ctx := context.Background()
	caller, _ := w.main("s1")
	for range 3 {
		w.admit(w.newCall(caller, "read", map[string]any{"path": "README.md"}))
	}
	w.log.Close()
	key, err := audit.ReadKey(w.stateDir)
	must(t, err)
	verify := func() error {
		records, err := w.db.Audit(ctx)
		must(t, err)
		_, err = audit.Verify(ctx, records, key, nil)
		return err
	}
	must(t, verify())
	must(t, w.db.Write(ctx, true, func(tx *store.Tx) error {
		_, err := tx.Exec(`UPDATE audit SET record = replace(record, '"verdict":"allow"', '"verdict":"deny"') WHERE seq = 2`)
		return err
	}))
	if err := verify(); err == nil {
		return outcome{answer: harmful, why: "the change is not noticed", took: w.watch.longest}, nil
	}
	return outcome{answer: contained, took: w.watch.longest}, nil
}
