package builtin

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// What is printed by a command that failed because of where it ran. It is the command's own word: it earns a hint, and
// decides nothing.
var (
	notFoundInside = regexp.MustCompile(`(?m)^(?:toolward|(?:/bin/|/usr/bin/)?(?:ba|da)?sh)(?:: (?:line )?\d+)?: ([A-Za-z0-9_][A-Za-z0-9._+-]{0,63}): (?:command )?not found\r?$`)
	noNetwork      = regexp.MustCompile(`(?i)could not resolve host|temporary failure in name resolution|name or service not known|ENOTFOUND|EAI_AGAIN|` +
		`network is unreachable|no such host|dial tcp: lookup|failed to establish a new connection|unable to resolve`)
	unknownAuthor   = regexp.MustCompile(`(?m)^\*\*\* Please tell me who you are\.`)
	protectedInside = regexp.MustCompile(`(?i)\.git/(?:config|hooks\S*)'?: (?:device or resource busy|read-only file system)|could not lock config file|could not write config file`)
)

// limitsMet are what programs say when they meet a limit of their sandbox that the kernel keeps, and which one it is.
var limitsMet = []struct {
	said *regexp.Regexp
	hint string
}{
	{
		regexp.MustCompile(`(?i)\bfork\b[^\n]*(?:resource temporarily unavailable|EAGAIN)|can't fork|cannot fork|can't start new thread|unable to create (?:new )?native thread|` +
			`pthread_create failed|(?:spawn|posix_spawn)\S*[^\n]{0,200}EAGAIN|failed to create new OS thread|clone: resource temporarily unavailable`),
		"as many processes and threads as may run at once: sandbox.limits.pids",
	},
	{regexp.MustCompile(`(?i)too many open files|\bEMFILE\b`), "as many open files as a process may have: sandbox.limits.openFiles"},
	{regexp.MustCompile(`(?i)file too large|\bEFBIG\b|file size limit exceeded`), "the largest file that may be written: sandbox.limits.fileSize"},
	{
		regexp.MustCompile(`(?i)no space left on device|\bENOSPC\b|disk quota exceeded`),
		"a full file system: /tmp and others in memory hold a part of sandbox.limits.memory (sandbox.tmpfs says how much), or the disk is full",
	},
}

// note adds to the words about the end of a command what explains it where its sandbox is to blame, as far as that can be told.
func (s *session) note(end exit, ended, output string) string {
	switch {
	case s.spec.hint == nil || end.code == 0:
		return ended
	case end.ending == endedTimeout && s.spec.slow != "":
		return strings.TrimSpace(ended + "\n" + s.spec.slow)
	case end.ending != endedItself:
		return ended
	}
	return strings.TrimSpace(ended + "\n" + s.spec.hint(output))
}

// hintFor is what may explain why a confined command fails; nil for one of this machine that nothing was kept from.
func (b *Toolbox) hintFor(plan *execPlan) func(output string) string {
	switch {
	case plan.box == nil && plan.light:
		return lightHint
	case plan.box == nil:
		return nil
	}
	return func(output string) string {
		if hosts := plan.box.unreached(); len(hosts) > 0 {
			return "(The command ran in a sandbox. Host asked for: " + strings.Join(hosts, "; ") + ")"
		}
		if m := notFoundInside.FindStringSubmatch(output); m != nil && strings.Contains(plan.command, m[1]) && b.isHere(m[1]) {
			return "(" + m[1] + " is a program of this machine, but not of the sandbox that the command ran in: its directory is in none of the toolchains that " +
				"are shown there. People can have them looked for anew with toolward sandbox probe, or name it: agents.defaults.sandbox.toolchains.with)"
		}
		if noNetwork.MatchString(output) {
			if plan.box.Offline {
				return "(The command ran in a sandbox that has no network. People can give it one: agents.defaults.sandbox.network)"
			}
			return "(The command ran in a sandbox, where hosts are reached through its proxy only: a program must keep to HTTPS_PROXY or ALL_PROXY)"
		}
		for _, limit := range limitsMet {
			if limit.said.MatchString(output) {
				return "(The command ran in a sandbox and met a limit of it: " + limit.hint + ")"
			}
		}
		if unknownAuthor.MatchString(output) {
			return "(The command ran in a sandbox, whose git knows who commits from user.name and user.email in the person's ~/.gitconfig as they were " +
				"when the gateway started: there are none. People can set them there, or with git config in the project)"
		}
		if protectedInside.MatchString(output) {
			return "(The command ran in a sandbox, where hooks and settings that this machine obeys cannot be changed)"
		}
		return ""
	}
}

// slowness may explain why a confined command takes too long; "" if nothing bounds what it may compute.
func (p *execPlan) slowness() string {
	if p.box == nil || p.box.CPUs <= 0 {
		return ""
	}
	return fmt.Sprintf("(The command ran in a sandbox that may use %v processors: sandbox.limits.cpus)", p.box.CPUs)
}

// unreached are the hosts that programs inside did not get.
func (c *Confinement) unreached() []string {
	if c.Unreached == nil {
		return nil
	}
	return c.Unreached()
}

// isHere reports whether commands of this machine find a program. Where is not told to the sandbox.
func (b *Toolbox) isHere(name string) bool {
	for _, dir := range filepath.SplitList(b.environ["PATH"]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
