package profiles

import (
	"path"
	"regexp"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkCurl looks at addresses, and at values that name files by "@".
func checkCurl(a *arguments) {
	addresses := a.operands
	for _, g := range a.given {
		if g.spelling == "--url" {
			addresses = append(addresses, g.value)
		}
		if g.attached {
			a.curlValue(g)
		}
	}
	remoteName := a.has("-O") || a.has("--remote-name") || a.has("--remote-name-all")
	upload, _ := a.value("-T", "--upload-file")
	globs := !a.has("-g") && !a.has("--globoff")
	for _, address := range addresses {
		a.curlAddress(address, globs, upload != "")
		if remoteName {
			a.remoteName(address, globs)
		}
	}
}

// curlValue says which files the value of an option names.
func (a *arguments) curlValue(g given) {
	file, at := strings.CutPrefix(g.value, "@")
	switch g.spelling {
	case "-d", "--data", "--data-ascii", "--data-binary", "--json":
		a.readsIf(at, file, g.spelling)
	case "-H", "--header":
		a.readsIf(at, file, g.spelling)
		// The host of the address is the one that is decided about: behind a shared front the header chooses another.
		if name, _, _ := strings.Cut(g.value, ":"); strings.EqualFold(strings.TrimSpace(name), "host") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	case "-w", "--write-out":
		a.readsIf(at, file, g.spelling)
		if strings.Contains(g.value, "%output{") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	case "-b", "--cookie":
		a.readsIf(!strings.Contains(g.value, "="), g.value, g.spelling)
	case "--data-urlencode", "--url-query": // content, =content, name=content, @file, name@file
		name, content, found := strings.Cut(g.value, "@")
		a.readsIf(found && !strings.Contains(name, "="), content, g.spelling)
	case "-F", "--form":
		a.curlForm(g)
	case "-T", "--upload-file":
		a.readsIf(g.value != ".", g.value, g.spelling)
		if strings.ContainsAny(g.value, "{[") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
		}
	case "-E", "--cert": // file:password
		file, _, found := strings.Cut(g.value, ":")
		a.readsIf(found, file, g.spelling)
	case "-o", "--output":
		a.curlOutput(g)
	}
}

func (a *arguments) readsIf(isFile bool, file, via string) {
	if isFile && file != "-" {
		a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: via})
	}
}

// curlForm reads "name=content": "@file" and "<file" are read, several parted by commas, and so are "headers=@file"
// and parts of a multipart in parentheses.
func (a *arguments) curlForm(g given) {
	_, content, _ := strings.Cut(g.value, "=")
	if content == "" {
		return
	}
	if strings.ContainsAny(content[:1], "@<") {
		for _, file := range strings.Split(content[1:], ",") {
			file, _, _ = strings.Cut(file, ";")
			a.readsIf(true, strings.Trim(file, `"`), g.spelling)
		}
	}
	if lower := strings.ToLower(content); strings.Contains(lower, "headers=") || strings.Contains(content, `"`) && strings.ContainsAny(content, ";,") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
	}
}

var outputNumber = regexp.MustCompile(`#[0-9]`)

// curlOutput: "#1" in a name stands for a part of the address; --output-dir is put before all names.
func (a *arguments) curlOutput(g given) {
	if outputNumber.MatchString(g.value) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + " " + g.value})
	}
	if dir, given := a.value("--output-dir"); given && g.value != "-" {
		a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(dir, g.value), Via: g.spelling})
	}
}

// remoteName says which file an address is saved in under its own name.
func (a *arguments) remoteName(address string, globs bool) {
	dir, _ := a.value("--output-dir")
	name, _, _ := strings.Cut(address, "?")
	name, _, _ = strings.Cut(name, "#")
	name = path.Base(name)
	if globs && strings.ContainsAny(address, "{}[]") || strings.Contains(name, `\`) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: address})
		return
	}
	a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(dir, name), Via: "-O"})
}

// guessedSchemes are beginnings of hosts from which curl guesses another scheme than http.
var guessedSchemes = []string{"ftp.", "dict.", "ldap.", "imap.", "smtp.", "pop3."}

// curlAddress says what an address is: a host of the web, or a file. Everything else is not understood, and so are
// globs before the path, which make one address many.
func (a *arguments) curlAddress(address string, globs, upload bool) {
	scheme, rest, found := strings.Cut(address, ":")
	switch {
	case found && strings.EqualFold(scheme, "file") && !upload && !strings.ContainsAny(rest, "{}[]"):
		file := strings.TrimPrefix(rest, "//")
		if strings.HasPrefix(rest, "//") && !strings.HasPrefix(file, "/") { // file://localhost/path
			_, file, _ = strings.Cut(file, "/")
			file = "/" + file
		}
		a.does(shell.Effect{Kind: shell.Reads, Path: file, Via: address})
		return
	case globs && strings.ContainsAny(authority(address), "{}"):
		a.does(shell.Effect{Kind: shell.Unknown, Via: address})
		return
	case !strings.Contains(address, "://"):
		for _, prefix := range guessedSchemes {
			if strings.HasPrefix(strings.ToLower(address), prefix) {
				a.does(shell.Effect{Kind: shell.Unknown, Via: address})
				return
			}
		}
	}
	a.does(urlEffect(address, ""))
}

// authority is what stands before the path of an address.
func authority(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		scheme, rest = "", address
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return scheme + rest
}

// checkWget looks at addresses and at the files that they are saved in.
func checkWget(a *arguments) {
	if proxied, _ := a.value("-B", "--base"); proxied != "" {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "--base"})
	}
	_, document := a.value("-O", "--output-document")
	for _, address := range a.operands {
		a.does(urlEffect(address, ""))
		if document || a.has("--spider") {
			continue
		}
		dir, _ := a.value("-P", "--directory-prefix")
		name, _, _ := strings.Cut(address, "#")
		if i := strings.Index(name, "://"); i >= 0 {
			name = name[i+3:]
		}
		if !strings.Contains(name, "/") || strings.HasSuffix(name, "/") {
			name = "index.html"
		}
		a.does(shell.Effect{Kind: shell.Writes, Path: path.Join(dir, path.Base(name)), Via: address})
	}
	if a.has("-r") || a.has("--recursive") || a.has("-m") || a.has("--mirror") || a.has("-p") || a.has("--page-requisites") || a.has("-x") {
		dir, given := a.value("-P", "--directory-prefix")
		if !given {
			dir = "."
		}
		a.does(shell.Effect{Kind: shell.Writes, Path: dir})
	}
}
