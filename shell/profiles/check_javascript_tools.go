package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// checkNoResponseFiles: "@file" stands for options that lie in a file, which is not looked into.
func checkNoResponseFiles(a *arguments) {
	for _, word := range a.operands {
		if strings.HasPrefix(word, "@") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

// eslintFormats are the formats that ESLint and Stylelint bring along; any other is a module that is loaded.
var eslintFormats = strings.Fields("stylish json json-with-metadata html compact unix junit checkstyle string verbose tap github")

// eslintParserOption are the options of parsers that name no file and no module.
var eslintParserOption = regexp.MustCompile(`^(ecmaVersion|sourceType|ecmaFeatures\.\w+|requireConfigFile)[:=]\w+$`)

func checkEslintFormat(a *arguments) {
	for _, g := range a.given {
		if g.spelling == "--parser-options" && !eslintParserOption.MatchString(g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
		if slices.Contains([]string{"-f", "--format", "--formatter"}, g.spelling) && !slices.Contains(eslintFormats, g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
	}
}

// What test runners bring along, by the option that chooses it; anything else is a module that is loaded.
var (
	testReporters = strings.Fields(`default summary github-actions verbose basic dot json junit tap tap-flat html blob hanging-process
		spec list line min progress landing nyan doc markdown xunit json-stream agents github`)
	testInterfaces    = strings.Fields("bdd tdd qunit exports")
	testPools         = strings.Fields("threads forks vmThreads vmForks typescript")
	coverageReporters = strings.Fields("clover cobertura html html-spa json json-summary lcov lcovonly none teamcity text text-lcov text-summary")
	coverageProviders = strings.Fields("v8 babel istanbul")
	prettierParsers   = strings.Fields(`babel babel-flow babel-ts flow typescript espree meriyah acorn css less scss json json5 jsonc json-stringify
		graphql markdown mdx vue yaml html angular lwc glimmer mjml`)
	testEnvironments = strings.Fields("node jsdom happy-dom edge-runtime")
)

// checkJest looks at what test runners load by name, and at configuration that is given as text.
func checkJest(a *arguments) {
	for _, g := range a.given {
		var allowed []string
		switch g.spelling {
		case "--reporter", "-R", "--reporters":
			allowed = testReporters
		case "--testEnvironment", "--env", "--environment":
			allowed = testEnvironments
		case "--ui", "-u":
			if !g.attached { // a switch of other runners
				continue
			}
			allowed = testInterfaces
		case "--pool":
			allowed = testPools
		case "--coverageReporters", "--coverage.reporter":
			allowed = coverageReporters
		case "--coverageProvider", "--coverage.provider":
			allowed = coverageProviders
		case "--parser":
			allowed = prettierParsers
		case "-c", "--config":
			if strings.HasPrefix(strings.TrimSpace(g.value), "{") {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
			continue
		default:
			continue
		}
		for name := range strings.SplitSeq(g.value, ",") {
			if !slices.Contains(allowed, name) {
				a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
			}
		}
	}
}

// checkRollupConfig: the configuration is code; "node:x" and "npm:x" are packages.
func checkRollupConfig(a *arguments) {
	for _, spelling := range []string{"-c", "--config"} {
		if file, ok := a.value(spelling); ok {
			a.word(Role{Name: "script"}, file, spelling)
		}
	}
}
