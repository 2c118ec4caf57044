package profiles

import (
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// harmlessSSH are settings of ssh that name neither a program nor a file nor another way to the host.
var harmlessSSH = strings.Fields(`batchmode connecttimeout connectionattempts serveraliveinterval serveralivecountmax
	tcpkeepalive loglevel compression port user stricthostkeychecking passwordauthentication pubkeyauthentication
	preferredauthentications numberofpasswordprompts identitiesonly addressfamily requesttty ciphers macs kexalgorithms
	hostkeyalgorithms escapechar visualhostkey`)

// checkSSHSettings looks at -o NAME=VALUE and -o "NAME VALUE". ProxyCommand and its like start programs.
func checkSSHSettings(a *arguments) {
	for _, g := range a.given {
		if g.spelling != "-o" {
			continue
		}
		name := g.value
		if i := strings.IndexAny(name, "= \t"); i >= 0 {
			name = name[:i]
		}
		if !slices.Contains(harmlessSSH, strings.ToLower(name)) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: "-o " + g.value})
		}
	}
}

// checkSSH: a shell on the other machine is given the rest of the command, or what it reads.
func checkSSH(a *arguments) {
	if len(a.operands) > 1 && strings.HasPrefix(a.operands[1], "-") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: a.operands[1]}) // an option, although it stands behind the host
	}
	if len(a.operands) > 0 {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "ssh", Text: strings.Join(a.operands[1:], " ")})
	}
}

// checkCopyRemote tells files of this machine from those of others: host:path, host::module and URLs. The last operand
// is written, or listed if it is the only one.
func checkCopyRemote(a *arguments) {
	last := len(a.operands) - 1
	for i, word := range a.operands {
		scheme, rest, isURL := strings.Cut(word, "://")
		before, _, hasColon := strings.Cut(word, ":")
		switch {
		case strings.HasPrefix(word, "-") && a.plain < 0:
			a.does(shell.Effect{Kind: shell.Unknown, Via: word}) // an option for some versions, a file for others
		case isURL && slices.Contains([]string{"scp", "sftp", "rsync", "ssh"}, scheme):
			a.address(rest, word)
		case hasColon && strings.HasPrefix(word, "["):
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		case hasColon && !strings.Contains(before, "/"):
			a.address(before, word)
		case i == last && i > 0:
			a.does(shell.Effect{Kind: shell.Writes, Path: word})
		default:
			a.does(shell.Effect{Kind: shell.Reads, Path: word})
		}
	}
}

// checkSSHKeygen: with -l and -y a key is shown, otherwise one is made.
func checkSSHKeygen(a *arguments) {
	file, given := a.value("-f")
	switch {
	case !given:
		a.does(shell.Effect{Kind: shell.Unknown, Via: "ssh-keygen without -f"})
	case a.has("-l") || a.has("-y") || a.has("-B"):
		a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: "-f"})
	default:
		a.does(shell.Effect{Kind: shell.Writes, Path: file, Via: "-f"})
		a.does(shell.Effect{Kind: shell.Writes, Path: file + ".pub", Via: "-f"})
	}
	if len(a.operands) > 0 {
		a.does(shell.Effect{Kind: shell.Unknown, Via: a.operands[0]})
	}
}

// checkSSHAdd: without -l and -L it hands keys to the agent.
func checkSSHAdd(a *arguments) {
	for _, file := range a.operands {
		a.does(shell.Effect{Kind: shell.Reads, Path: file})
	}
	if len(a.operands) > 0 || !a.has("-l") && !a.has("-L") {
		a.does(shell.Effect{Kind: shell.Configures})
	}
}

// digTypes are words of dig that are no names.
var digTypes = strings.Fields(`a aaaa any axfr caa cname dnskey ds https hinfo loc mx naptr ns nsec nsec3 ptr rrsig soa
	spf srv sshfp svcb tlsa txt in ch hs`)

// checkDig reads names and servers. A name that is asked for goes to whoever serves it: data leaves in names, too.
func checkDig(a *arguments) {
	args := a.operands
	asked := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case strings.HasPrefix(arg, "@"):
			a.does(shell.Effect{Kind: shell.Network, Host: arg[1:], Via: arg})
		case strings.HasPrefix(arg, "+"), slices.Contains([]string{"-4", "-6", "-m", "-u", "-v", "-h", "-i", "-r"}, arg):
			asked = asked || arg == "-v" || arg == "-h"
		case slices.Contains([]string{"-x", "-q"}, arg) && i+1 < len(args):
			i++
			asked = true
			a.does(shell.Effect{Kind: shell.Network, Host: args[i], Via: arg})
		case slices.Contains([]string{"-t", "-c", "-p", "-b"}, arg) && i+1 < len(args):
			i++
		case strings.HasPrefix(arg, "-"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: arg})
		case !slices.Contains(digTypes, strings.ToLower(arg)):
			asked = true
			a.does(shell.Effect{Kind: shell.Network, Host: arg})
		}
	}
	if !asked {
		a.does(shell.Effect{Kind: shell.Network})
	}
}
