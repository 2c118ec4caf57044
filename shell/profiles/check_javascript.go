package profiles

import (
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// nodeReporters are the reporters of tests that come with Node.js; any other is a module that is loaded.
var nodeReporters = strings.Fields("spec tap dot junit lcov")

// checkNode looks at what Node.js runs if no script is named, and at who may talk to its debugger.
func checkNode(a *arguments) {
	for _, g := range a.given {
		switch g.spelling {
		case "--inspect", "--inspect-brk", "--inspect-port", "--debug-port":
			// Whoever reaches the port runs code.
			if g.attached && !isLoopback(g.value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		case "--test-reporter":
			if !slices.Contains(nodeReporters, g.value) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		case "--test-reporter-destination":
			if g.value != "stdout" && g.value != "stderr" {
				a.does(shell.Effect{Kind: shell.Writes, Path: g.value, Via: g.spelling})
			}
		case "--test":
			a.does(shell.Effect{Kind: shell.Project, Via: g.spelling})
		}
	}
	silent := slices.ContainsFunc([]string{
		"-v", "--version", "-h", "--help", "--v8-options", "-e", "--eval", "-p", "--print",
		"--test", "--run",
	}, a.has)
	if len(a.operands) == 0 && !silent {
		a.does(shell.Effect{Kind: shell.Evaluates, Lang: "javascript", Via: "standard input"})
	}
	if len(a.operands) > 0 && a.operands[0] == "inspect" && a.plain < 0 {
		a.does(shell.Effect{Kind: shell.Unknown, Via: "inspect"})
	}
}

// isLoopback reports whether an address, a port or both are reached from this machine only.
func isLoopback(address string) bool {
	if shell.IsNumber(address) {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// npmRegistryName is a package of the registry: a name, a scope before it perhaps, a version or tag behind it.
var npmRegistryName = regexp.MustCompile(`^((npm|jsr):)?(@[\w.~-]+/)?[A-Za-z0-9~][\w.~-]*(@(npm:(@[\w.~-]+/)?[\w.~-]+(@[^:/\s]*)?|workspace:[\w.*^~-]*|[^:/\s]*))?$`)

// npmArchive are the names that npm takes for files.
var npmArchive = regexp.MustCompile(`(?i)\.(tgz|tar|tar\.gz)$`)

// checkNpmPackages looks for packages that do not come from the registry: addresses, repositories, archives,
// directories. Nothing is known of their code, which runs when they are installed.
func checkNpmPackages(a *arguments) {
	for _, p := range a.operands {
		if p != "." && (!npmRegistryName.MatchString(p) || npmArchive.MatchString(p)) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: p})
		}
	}
}

// checkNpmRun: the script "env" is there without being defined, and shows the environment.
func checkNpmRun(a *arguments) {
	if len(a.operands) > 0 && a.operands[0] == "env" {
		a.does(shell.Effect{Kind: shell.Environment, Via: "env"})
	}
}

// localTool is the name of a program that node_modules/.bin can hold. With a version or scope it names a package.
var localTool = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*$`)

// checkPackageRunner looks at what npx runs: a tool that the project has installed, or else a package that is fetched and
// run at once, whoever published it.
func checkPackageRunner(a *arguments) {
	words := a.operands
	for len(words) > 0 && slices.Contains([]string{"-y", "--yes", "--no", "--no-install", "-q", "--quiet", "--bun"}, words[0]) {
		words = words[1:]
	}
	switch {
	case len(words) == 1 && slices.Contains([]string{"--version", "-v", "--help", "-h"}, words[0]):
		return
	case len(words) == 0 || !localTool.MatchString(words[0]):
		a.does(shell.Effect{Kind: shell.Network})
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(words, " ")})
		return
	}
	a.does(shell.Effect{Kind: shell.Installs, Text: words[0], Unless: "node_modules/.bin/" + words[0]})
	a.does(shell.Effect{Kind: shell.Project, Via: words[0]})
	if _, known := effectsOfProgram(words[0], nil); known {
		a.inner(words[0], words[1:])
		return
	}
	for _, word := range words[1:] {
		if slices.Contains([]string{"-e", "--eval", "-p", "--print", "-pe"}, word) || strings.HasPrefix(word, "--eval=") {
			a.does(shell.Effect{Kind: shell.Evaluates, Lang: "javascript", Via: word})
		}
	}
}

// checkYarnWorkspace looks at the command that follows the name of a workspace.
func checkYarnWorkspace(a *arguments) {
	if len(a.operands) > 1 {
		yarnInner(a, a.operands[1:])
	}
}

// checkYarnForeach looks at the command that is run in all workspaces.
func checkYarnForeach(a *arguments) { yarnInner(a, a.operands) }

// yarnInner: of the commands within a command of yarn, those that run scripts of the project are known.
func yarnInner(a *arguments, words []string) {
	if len(words) > 1 && words[0] == "run" && words[1] != "env" && !strings.HasPrefix(words[1], "-") {
		a.does(shell.Effect{Kind: shell.Project, Via: "run"})
		return
	}
	if len(words) == 0 || !isScriptName(words[0]) {
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(words, " ")})
		return
	}
	a.does(shell.Effect{Kind: shell.Project, Via: words[0]})
}

// commonScript matches the names that projects give their scripts.
var commonScript = regexp.MustCompile(`^(build|compile|bundle|dev|develop|start|serve|preview|watch|test|tests|e2e|unit|coverage|bench|` +
	`lint|format|fmt|prettier|check|typecheck|types|tsc|type-check|clean|generate|codegen|docs|storybook|release|prepare|prebuild|` +
	`postbuild|precommit|validate|verify|ci|db|migrate|seed)([:._-][\w:._-]*)?$`)

// commonBinaries are tools that lie in the project's own node_modules/.bin.
var commonBinaries = strings.Fields(`eslint jest vitest mocha ava tap vite next nuxt astro webpack rollup esbuild parcel turbo nx
	biome playwright cypress tsx ts-node tsup tsd swc babel prisma drizzle-kit knip changeset lint-staged oxlint`)

func isScriptName(word string) bool {
	return commonScript.MatchString(word) || slices.Contains(commonBinaries, word)
}

// sourceFile matches files that bun runs by their name.
var sourceFile = regexp.MustCompile(`\.([cm]?[jt]s|[jt]sx)$`)

// checkScriptName looks at a word that is a script of the project, or else any program at all: "pnpm id" runs id.
func checkScriptName(a *arguments) {
	if len(a.operands) == 0 {
		return
	}
	switch word := a.operands[0]; {
	case a.profile.Names[0] == "bun" && sourceFile.MatchString(word):
		a.word(Role{Name: "script"}, word, "")
	case isScriptName(word):
		a.does(shell.Effect{Kind: shell.Project, Via: word})
	default:
		a.does(shell.Effect{Kind: shell.Runs, Argv: slices.Clone(a.operands)})
	}
}
