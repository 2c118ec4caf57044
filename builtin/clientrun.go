package builtin

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/command"
	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/settings"
)

// ByTicket reports whether only [Toolbox.StartForClient] may start a command of a client: one that runs in a sandbox, and one of this
// machine that no person saw in this form. moves: it may take the client's shell into another directory.
func ByTicket(r *toolward.Request) (yes, moves bool) {
	plan, ok := r.Facts.Prepared.(*execPlan)
	if !ok || plan.box == nil && (!plan.light || r.Seen) {
		return false, false
	}
	return true, moving.MatchString(plan.command)
}

// moving finds the words by which a shell changes its directory, or runs what may. One too many costs a little time.
var moving = regexp.MustCompile(`(?:^|[^A-Za-z0-9_./-])(?:cd|pushd|popd|chdir|eval|source)(?:[^A-Za-z0-9_./-]|$)|(?:^|[;&|({\n])[ \t]*\.[ \t]`)

// StartForClient starts a command that was admitted for a client's shell, where it was admitted for.
func (b *Toolbox) StartForClient(ctx context.Context, pass *toolward.Pass, terms ticket.Terms) (ticket.Command, error) {
	r := pass.Request()
	yes, _ := ByTicket(r)
	plan, _ := r.Facts.Prepared.(*execPlan)
	if !yes {
		return nil, errNotPrepared
	}
	if err := sameDirectory(terms.Dir, plan.clientDir); err != nil {
		return nil, err
	}
	if plan.box == nil {
		return b.startLightly(r, plan, &terms)
	}
	return b.startInside(ctx, r, plan, &terms)
}

// startInside starts a command in its sandbox, with the shell's environment as far as it may go in.
func (b *Toolbox) startInside(ctx context.Context, r *toolward.Request, plan *execPlan, terms *ticket.Terms) (ticket.Command, error) {
	handle, release, err := plan.box.Acquire(ctx, plan.command)
	if err != nil {
		return nil, err
	}
	command, left := b.commandFor(plan, terms)
	process, err := handle.Start(ctx, command)
	if err != nil {
		release()
		return nil, err
	}
	return &clientRun{Process: process, toolbox: b, plan: plan, session: r.Call.Session, left: left, release: release}, nil
}

// sameDirectory reports whether the shell stands where the command was judged. It stops a command that means other files.
func sameDirectory(shell, judged string) error {
	here, err := os.Stat(shell)
	there, err2 := os.Stat(judged)
	if err != nil || err2 != nil || !os.SameFile(here, there) {
		return fmt.Errorf("the shell is in %s, and the command was judged for %s: repeat the call", shell, judged)
	}
	return nil
}

// commandFor is what is started inside. left are the variables that do not go along.
func (b *Toolbox) commandFor(plan *execPlan, terms *ticket.Terms) (inside sandbox.Command, left []string) {
	inside = plan.inside
	inside.OfClient = true
	inside.Stdin, inside.Merged, inside.Terminal = terms.Stdin, terms.Merged, terms.Terminal
	inside.Env, left = plan.box.Env.OfClient(terms.Environ, b.secret)
	inside.Env = append(inside.Env, "PATH="+joinPaths(valueOf(inside.Env, "PATH"), valueOf(plan.box.Environ, "PATH")))
	inside.Segments, inside.Shell = nil, ""
	if plan.ruling != nil && !terms.Reports {
		if inside.Argv = plan.ruling.SingleProgram(); inside.Argv != nil {
			inside.Keeps = true
			return inside, left
		}
	}
	inside.Argv = []string{"/bin/sh", "-c", clientShell, "sh", plan.command, valueOf(terms.Environ, "SHELL")}
	inside.Keeps, inside.Reports = true, terms.Reports
	return inside, left
}

// clientShell runs a text by the shell that the client would have used, as far as the sandbox has it, and tells where that ended.
// A shell reads the text once, so it is handed on as an argument.
const clientShell = `for s in "$2" bash sh; do case $s in */bash|*/zsh|bash|sh) if command -v "$s" >/dev/null 2>&1; then ` +
	`exec "$s" -c 'trap '"'"'{ pwd -P >&63; } 2>/dev/null'"'"' EXIT; eval "$1"' "$s" "$1"; fi;; esac; done; exit 127`

// joinPaths is a search path followed by what it lacks of another.
func joinPaths(first, second string) string {
	list := slices.DeleteFunc(strings.Split(first, ":"), func(dir string) bool { return !filepath.IsAbs(dir) })
	for dir := range strings.SplitSeq(cmp.Or(second, command.DefaultPath), ":") {
		if !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return strings.Join(list, ":")
}

// valueOf is a variable's value in an environment; the last one counts.
func valueOf(environ []string, name string) (value string) {
	for _, variable := range environ {
		if v, ok := strings.CutPrefix(variable, name+"="); ok {
			value = v
		}
	}
	return value
}

// clientRun is a command of a client's shell that runs in its sandbox.
type clientRun struct {
	sandbox.Process
	toolbox *Toolbox
	plan    *execPlan
	session toolward.SessionKey
	left    []string
	release func()
}

// Ended lets go of the sandbox, and says what a person or a model cannot see from the output alone.
func (c *clientRun) Ended(status sandbox.ExitStatus, err error, tail []byte) (note, dir string) {
	defer c.release()
	if err != nil {
		return "toolward: the command was ended: " + err.Error(), ""
	}
	var notes []string
	if status.Warning != "" {
		notes = append(notes, "toolward: "+status.Warning)
	}
	switch {
	case status.OOM:
		notes = append(notes, "toolward: "+errMemory.Error())
	case status.Code != 0 || status.Signal != 0:
		if hint := c.toolbox.hintFor(c.plan)(string(tail)); hint != "" {
			notes = append(notes, "toolward: "+hint)
		}
		if left := c.toolbox.leftOut(c.session, c.left); len(left) > 0 {
			notes = append(notes, "toolward: these variables do not go into the sandbox: "+strings.Join(left, ", "))
		}
	}
	return strings.Join(notes, "\n"), c.onMachine(status.Dir)
}

// onMachine is where a directory of the sandbox is on this machine; "" if it is nowhere, so that the client's shell stays. What
// comes from inside is only data: a shell is not led into a directory that the sandbox does not have.
func (c *clientRun) onMachine(inside string) string {
	if inside == "" {
		return ""
	}
	at, err := settings.NewMountTable(c.plan.box.Workdir, c.plan.box.Mounts).Map(inside, "", false, nil)
	if err != nil || at.Host == "" {
		return ""
	}
	real, err := filepath.EvalSymlinks(at.Host)
	if info, err2 := os.Stat(at.Host); err != nil || err2 != nil || real != at.Host || !info.IsDir() {
		return ""
	}
	return at.Host
}

// mostSaid bounds for how many sessions it is remembered what was said to them.
const mostSaid = 1000

// clientsOwn are the variables of clients and of Toolward itself: no command misses them.
var clientsOwn = regexp.MustCompile(`^(?:(?:ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|COPILOT|OPENCODE|TOOLWARD)_|CLAUDECODE$)`)

// leftOut are the variables that did not go along and of which the session has not been told.
func (b *Toolbox) leftOut(session toolward.SessionKey, names []string) (news []string) {
	b.said.mu.Lock()
	defer b.said.mu.Unlock()
	if b.said.of == nil || len(b.said.of) >= mostSaid {
		b.said.of = map[toolward.SessionKey]map[string]bool{}
	}
	known := b.said.of[session]
	if known == nil {
		known = map[string]bool{}
		b.said.of[session] = known
	}
	for _, name := range names {
		if !known[name] && !clientsOwn.MatchString(name) {
			known[name] = true
			news = append(news, name)
		}
	}
	return news
}

// secret reports whether a value may not go into a sandbox. Where nobody can tell, none may.
func (b *Toolbox) secret(value string) bool { return b.deps.Secret == nil || b.deps.Secret(value) }
