package doctor

import (
	"fmt"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/policy/report"
)

// remedies say what to do about warnings of the policy, by id.
var remedies = map[string]string{
	report.CheckAllowlistStripped: "enable the plug-in, mend the list, or set tools.unmatchedAllowlist to closed",
	report.CheckUnknownEntries:    "mend the name, or remove the entry",
	report.CheckWriteDenied:       "deny apply_patch too, or all of group:fs",
	report.CheckSandboxDeny:       "use tools.sandbox.tools.alsoDeny, which adds to the default list",
	report.CheckSandboxMessage:    "deny message to sandboxed sessions",
	report.CheckMutableName:       "use id:…",
	report.CheckModelEntry:        "repeat the denied tools in the model's entry",
	report.CheckInheritOff:        "let sub-agents inherit: remove the setting",
	report.CheckBlockedEnabled:    "remove it from teg.enable if it is not needed",
	report.CheckUntypedSender:     "write id:… in front of it",
	report.CheckAmbiguousGroup:    "keep one of them",
	report.CheckHTTPNotExact:      "name the tools exactly, or remove the entry",
	report.CheckToolRefused:       "rename the tool, or disable the plug-in",
	report.CheckGlobLoosens:       "name the tool, or the tool and its action",
	report.CheckNameTheAction:     "name the tool and its action",
	report.CheckRuleAllowsNothing: "remove the rule, or name what it is meant for",
	report.CheckLoosened:          "let people decide: remove the entry, or narrow it to an action or a rule",
}

// warning turns a warning of the policy into a finding. Its code is the id of the check.
func (e *examination) warning(w report.Warning) {
	severity := Warn
	if w.Severity == toolward.Critical {
		severity = Critical
	}
	where := w.Path.String()
	if w.Tool != "" {
		where = "tool " + w.Tool
	}
	e.findAs(severity, w.Code, remedies[w.Code], "%s: %s", where, w.Text)
}

// surface says what can be reached and used.
func (e *examination) surface() error {
	f := e.file
	reach := "this machine"
	if e.outside() {
		reach = "other machines"
	}
	parts := []string{
		fmt.Sprintf("%s reachable from %s", f.Server.Listen, reach),
		fmt.Sprintf("preset %s, of commands %s", f.TEG.Preset, f.Tools.Exec.Preset),
		fmt.Sprintf("agents with settings: %d", len(f.Agents.List)),
		fmt.Sprintf("channels: %d", len(f.Channels)),
		fmt.Sprintf("plug-ins around calls: %d", len(f.Plugins.Entries)),
		fmt.Sprintf("overrides of classes: %d, rules: %d, enabled blocked rows: %d", len(f.TEG.Tools), len(f.TEG.Rules), len(f.TEG.Enable)),
	}
	e.find("summary.attack_surface", "", "%s", strings.Join(parts, "; "))
	return nil
}
