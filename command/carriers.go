package command

import (
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/command/allowlist"
)

// Shells, by plain name. Those of the first list take POSIX scripts.
var (
	posixShells = []string{"ash", "bash", "dash", "ksh", "sh", "zsh"}
	otherShells = []string{"fish", "cmd", "powershell", "pwsh"}
)

func isShell(name string) bool {
	return slices.Contains(posixShells, name) || slices.Contains(otherShells, name)
}

func isMultiplexer(name string) bool { return name == "busybox" || name == "toybox" }

// shellBuiltins change the shell, run text in it, or evaluate subscripts in their arguments: as programs they are never
// what they seem.
var shellBuiltins = strings.Fields(`eval exec command builtin source . trap alias unalias enable hash set shopt umask
	ulimit unset let read wait declare typeset local export readonly integer float mapfile readarray getopts fc bind
	complete compgen compopt pushd popd disown suspend autoload zmodload emulate functions setopt unsetopt`)

// carriers run code that their arguments or the files around them hold: a path entry for one would allow any code.
var carriers = strings.Fields(`python pypy node nodejs bun deno ruby irb perl php lua luajit awk gawk mawk nawk osascript
	tsx ts-node jiti vite-node npx npm pnpm yarn bunx uvx uv pipx make gmake ninja just rake bundle gradle gradlew mvn ant sbt
	bazel xargs parallel expect tclsh wish julia rscript r ghci swipl erl elixir iex gdb lldb vim vi view nvim emacs ed ex
	env ssh docker podman kubectl su sudo doas script watch at batch crontab systemd-run`)

// Breadth says how much an entry covers besides one program.
type Breadth uint8

// The breadths, narrowest first.
const (
	Narrow    Breadth = iota
	AnyCode           // a program that runs whatever code it is given
	Directory         // every program of a directory
	Anything          // every command
)

// BreadthOf tells how much an entry covers. One with an argv covers that and nothing else.
func BreadthOf(e *allowlist.Entry) Breadth {
	pattern := strings.TrimSpace(e.Pattern)
	name := strings.TrimRight(path.Base(pattern), "*?")
	switch {
	case len(e.Argv) > 0 || e.ArgPattern != "":
		return Narrow
	case pattern == "*":
		return Anything
	case name == "":
		return Directory
	case carriesCode(name) || isShell(plainName(name)) || isMultiplexer(plainName(name)):
		return AnyCode
	}
	return Narrow
}

func carriesCode(name string) bool { return slices.Contains(carriers, plainName(name)) }
