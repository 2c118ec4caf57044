package profiles

import (
	"path"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkGhAPI: everything but GET changes something, and a full address would be talked to with the user's token.
func checkGhAPI(a *arguments) {
	if method, given := a.value("-X", "--method"); given && !strings.EqualFold(method, "GET") && !strings.EqualFold(method, "HEAD") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "--method " + method})
	}
	for _, endpoint := range a.operands {
		if strings.Contains(endpoint, ":/") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: endpoint})
		}
	}
}

// checkGhClone: what stands behind "--" are options of git clone, which start programs.
func checkGhClone(a *arguments) {
	if a.plain >= 0 && a.plain < len(a.operands) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-- " + strings.Join(a.operands[a.plain:], " ")})
	}
	if len(a.operands) == 0 {
		return
	}
	// What is cloned is a stranger's unless the project names it, and the last part of its name becomes a directory here.
	from := a.operands[0]
	if len(a.operands) == 1 {
		a.does(shell.Effect{Kind: shell.Writes, Path: strings.TrimSuffix(path.Base(strings.TrimRight(from, "/")), ".git")})
	}
	if !strings.Contains(from, ":") {
		from = "https://github.com/" + from
	}
	a.does(shell.Effect{Kind: shell.Network, Via: a.operands[0], Remote: from})
}

// checkKubectl: secrets are shown, and templates are read from files that -o names.
func checkKubectl(a *arguments) {
	for _, word := range a.operands {
		for kind := range strings.SplitSeq(strings.ToLower(word), ",") {
			kind, _, _ = strings.Cut(kind, "/")
			if kind, _, _ = strings.Cut(kind, "."); kind == "secret" || kind == "secrets" {
				a.does(shell.Effect{Kind: shell.Environment, Via: word})
			}
		}
	}
	if output, _ := a.value("-o", "--output"); strings.Contains(output, "-file") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "-o " + output})
	}
}

// checkBuildContext looks at what an image is built from: a directory, or an address that is fetched and whose Dockerfile
// runs.
func checkBuildContext(a *arguments) {
	for _, word := range a.operands {
		if strings.ContainsAny(word, ":@") || strings.HasPrefix(word, "github.com/") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
		a.does(shell.Effect{Kind: shell.Enters, Path: word})
	}
	if file, ok := a.value("-f", "--file"); ok {
		if strings.ContainsAny(file, ":@") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: file})
		}
		a.does(shell.Effect{Kind: shell.Enters, Path: file, Via: "-f"})
	}
}
