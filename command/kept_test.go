package command

import (
	"testing"

	"github.com/toolward/toolward"
)

// TestWorkThatCanBeTakenBack: what git would lose is asked about where nobody could bring it back, and there only.
func TestWorkThatCanBeTakenBack(t *testing.T) {
	plain := map[string]string{"/ws/.git/HEAD": "f", "/ws/src/a.go": "f", "/ws/node_modules/x/.vscode/tasks.json": "f"}
	with := func(more map[string]string) map[string]string {
		files := map[string]string{}
		for name, what := range plain {
			files[name] = what
		}
		for name, what := range more {
			files[name] = what
		}
		return files
	}
	for name, c := range map[string]struct {
		files   map[string]string
		dir     string
		lost    bool // nothing is kept
		level   toolward.Level
		command string
		want    toolward.Verdict
	}{
		"reset":                        {plain, "", false, toolward.Normal, "git reset --hard HEAD~3", toolward.Allow},
		"reset below":                  {plain, "/ws/src", false, toolward.Normal, "git reset --hard", toolward.Allow},
		"clean":                        {plain, "", false, toolward.Normal, "git clean -fdx", toolward.Allow},
		"clean here":                   {plain, "", false, toolward.Normal, "git clean -fd src", toolward.Allow},
		"branch":                       {plain, "", false, toolward.Normal, "git branch -D old", toolward.Allow},
		"checkout of everything":       {plain, "", false, toolward.Normal, "git checkout -- .", toolward.Allow},
		"restore of everything":        {plain, "", false, toolward.Normal, "git restore .", toolward.Allow},
		"switch by force":              {plain, "", false, toolward.Normal, "git switch -f main", toolward.Allow},
		"in a list":                    {plain, "", false, toolward.Normal, "git fetch && git reset --hard origin/main", toolward.Allow},
		"not kept":                     {plain, "", true, toolward.Normal, "git reset --hard HEAD~3", toolward.Ask},
		"not kept, clean":              {plain, "", true, toolward.Normal, "git clean -fd", toolward.Ask},
		"tense":                        {plain, "", false, toolward.Elevated, "git reset --hard HEAD~3", toolward.Ask},
		"objects":                      {plain, "", false, toolward.Normal, "git gc --prune=now", toolward.Ask},
		"reflog":                       {plain, "", false, toolward.Normal, "git reflog expire --expire=now --all", toolward.Ask},
		"stash":                        {plain, "", false, toolward.Normal, "git stash clear", toolward.Ask},
		"of others":                    {plain, "", false, toolward.Normal, "git push --force origin main", toolward.Ask},
		"repositories go, too":         {plain, "", false, toolward.Normal, "git clean -ffdx", toolward.Ask},
		"repositories go, spelled out": {plain, "", false, toolward.Normal, "git clean -f --force -d", toolward.Ask},
		"another directory":            {plain, "", false, toolward.Normal, "git -C /home/dev reset --hard", toolward.Ask},
		"another working tree":         {plain, "", false, toolward.Normal, "git --work-tree=/home/dev reset --hard", toolward.Ask},
		"another tree and a cd":        {plain, "", false, toolward.Normal, "cd .. && git reset --hard", toolward.Ask},
		"settings of a client":         {with(map[string]string{"/ws/.claude/settings.json": "f"}), "", false, toolward.Normal, "git clean -fd", toolward.Ask},
		"settings deep down":           {with(map[string]string{"/ws/src/.vscode/tasks.json": "f"}), "", false, toolward.Normal, "git clean -fd", toolward.Ask},
		"part of a repository":         {map[string]string{"/.git/HEAD": "f", "/ws/src/a.go": "f"}, "", false, toolward.Normal, "git reset --hard", toolward.Ask},
		"a repository elsewhere":       {map[string]string{"/ws/.git": "t:gitdir: /home/dev/x/.git/worktrees/ws\n"}, "", false, toolward.Normal, "git branch -D old", toolward.Ask},
		"a submodule":                  {with(map[string]string{"/ws/sub/.git": "t:gitdir: ../.git/modules/sub\n", "/ws/sub/a": "f"}), "/ws/sub", false, toolward.Normal, "git branch -D old", toolward.Ask},
		"a repository within":          {with(map[string]string{"/ws/sub/.git/HEAD": "f"}), "/ws/sub", false, toolward.Normal, "git reset --hard", toolward.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.files)
			w.kept = !c.lost
			if c.dir != "" {
				w.dir = c.dir
			}
			if a := w.evaluateAt(t, onMiss(Developer), c.command, c.level); verdict(a) != c.want {
				t.Errorf("%s: %s, want %s: %v %s", c.command, verdict(a), c.want, codes(a), a.Reason)
			}
		})
	}
}
