package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// onlyOnMachine are programs that cannot do their work in a sandbox: they need the person's keys, services of the machine, or
// what is of the machine itself. Inside they would fail; so their commands are judged as ones of the machine at once.
//
// A row is a program and the words of which its first operand must be one; without words the program as a whole. What a program
// does on the machine is still judged by its profile and by the allowlist: this table lets nothing run.
var onlyOnMachine = map[string][]string{
	// The person's keys and accounts.
	"ssh": nil, "scp": nil, "sftp": nil, "ssh-add": nil, "ssh-copy-id": nil, "gpg": nil, "gpg2": nil, "pass": nil,
	"gh": nil, "glab": nil, "hub": nil, "aws": nil, "gcloud": nil, "gsutil": nil, "az": nil, "doctl": nil, "fly": nil, "flyctl": nil,
	"heroku": nil, "vercel": nil, "netlify": nil, "wrangler": nil, "kubectl": nil, "helm": nil, "k9s": nil, "op": nil,
	"git":       {"push"},
	"npm":       {"publish", "login", "adduser", "whoami"},
	"cargo":     {"publish", "login"},
	"twine":     {"upload"},
	"terraform": {"apply", "destroy", "import"},
	"pulumi":    {"up", "destroy"},

	// Services of the machine.
	"docker": nil, "docker-compose": nil, "podman": nil, "nerdctl": nil, "systemctl": nil, "journalctl": nil, "service": nil,
	"launchctl": nil, "loginctl": nil, "hostnamectl": nil, "timedatectl": nil, "crontab": nil, "at": nil, "brew": nil,
	"sudo": nil, "su": nil, "doas": nil, "pkexec": nil, "apt": nil, "apt-get": nil, "dpkg": nil, "dnf": nil, "yum": nil, "pacman": nil,
	"snap": nil, "flatpak": nil, "mount": nil, "umount": nil, "reboot": nil, "shutdown": nil, "iptables": nil, "ufw": nil,

	// The person's screen.
	"open": nil, "xdg-open": nil, "pbcopy": nil, "pbpaste": nil, "xclip": nil, "xsel": nil, "wl-copy": nil, "wl-paste": nil,
	"notify-send": nil, "osascript": nil, "code": nil, "cursor": nil,
}

// OnlyOnMachine is the first program of the command that works only on the machine; "" if there is none, or if nobody knows because
// the command is not understood: then it runs where all others do.
func (a *Assessment) OnlyOnMachine() (program string) {
	if !a.OK {
		return ""
	}
	eachSegment(a.Segments, func(s *Segment) {
		if program == "" && s.onlyOnMachine() {
			program = strings.Join(s.machineWords(), " ")
		}
	})
	return program
}

// ListedForMachine is the first program of the command that an entry has run on the machine, whether or not it lets it; "" if there is
// none, or if nobody knows.
func (a *Assessment) ListedForMachine() (program string) {
	if !a.OK {
		return ""
	}
	eachSegment(a.Segments, func(s *Segment) {
		if program == "" && s.toMachine {
			program = s.programName()
		}
	})
	return program
}

func (s *Segment) onlyOnMachine() bool {
	name := s.programName()
	words, listed := onlyOnMachine[name]
	return listed && (words == nil || slices.Contains(words, s.operand())) || name == "git" && s.signs()
}

// programName is the plain name of the program, also of one that starts another and is not looked into; "" if there is none.
func (s *Segment) programName() string {
	word := s.Program.Word
	if word == "" && s.Builtin == "" && len(s.Argv) > 0 {
		word = s.Argv[0]
	}
	if word == "" {
		return ""
	}
	return plainName(word)
}

// signing are the commands of git that make a signature with -S, for which git needs the person's key.
var signing = []string{"commit", "tag", "merge", "rebase", "cherry-pick", "revert", "am"}

func (s *Segment) signs() bool {
	return slices.Contains(signing, s.operand()) && slices.ContainsFunc(s.Args, func(word string) bool {
		return word == "--gpg-sign" || strings.HasPrefix(word, "--gpg-sign=") || strings.HasPrefix(word, "-S")
	})
}

// operand is the first argument that is no option, nor the value of one of those that git has before its command.
func (s *Segment) operand() string {
	for i := 0; i < len(s.Args); i++ {
		switch word := s.Args[i]; {
		case word == "-C" || word == "-c" || word == "--git-dir" || word == "--work-tree":
			i++
		case !strings.HasPrefix(word, "-"):
			return word
		}
	}
	return ""
}

// machineWords are what of the segment makes it one of the machine, for people.
func (s *Segment) machineWords() []string {
	name := s.programName()
	if onlyOnMachine[name] == nil && name != "git" {
		return []string{name}
	}
	return []string{name, s.operand()}
}

// SingleProgram is the command as an argument list if it is one program that was found, and nothing that a shell would do for it:
// nil in every other case, also for what shells do themselves under a program's name. Started by itself such a program does, and
// says, exactly what it does under a shell.
func (a *Assessment) SingleProgram() []string {
	if !a.OK || a.Script || len(a.Segments) != 1 {
		return nil
	}
	s := &a.Segments[0]
	segment, ok := s.literal()
	name := s.Program.Word
	switch {
	case !ok || len(segment.Env) > 0 || len(segment.Redirects) > 0 || len(s.Wrappers) > 0 || s.Op != "":
		return nil
	case len(s.Written) != len(segment.Argv) || len(s.Written) == 0 || s.Written[0] != name || !s.Program.Found():
		return nil
	case slices.Contains(shellsOwn, name):
		return nil
	case strings.Contains(name, "/") && !path.IsAbs(name):
		return nil // a script sees in $0 the path by which the kernel was asked for it, and shows it
	}
	return s.Written
}

// shellsOwn are the names that bash or zsh keep for themselves, besides shellBuiltins; what is the same in every respect is left out.
var shellsOwn = strings.Fields(`: [ bg break builtin caller cd continue dirs echo exit fg help history jobs kill log logout
	printf print pwd return shift stat sched test times type typeset vared where whence which ztcp`)

// OnlyReads reports whether nothing is changed by the command, as far as the profiles of its programs tell. In doubt something is.
func (a *Assessment) OnlyReads() bool {
	only := a.OK && len(a.Segments) > 0
	eachSegment(a.Segments, func(s *Segment) { only = only && s.onlyReads() })
	return only
}

func (s *Segment) onlyReads() bool {
	for i := range s.Redirs {
		if s.Redirs[i].Writes() && s.Redirs[i].Target != "/dev/null" {
			return false
		}
	}
	reads := func(e shell.Effect) bool {
		return e.Kind == shell.Reads || e.Kind == shell.Enters || e.Kind == shell.Runs
	}
	return s.Builtin != "" || s.profile && !slices.ContainsFunc(s.effects, func(e shell.Effect) bool { return !reads(e) })
}
