// Command toolward is the tool firewall: the daemon, its command line and the thin clients of agents.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/toolward/toolward/bridge/runclient"
	"github.com/toolward/toolward/cmd/toolward-inside/entry"
	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/gateway/installation"
	"github.com/toolward/toolward/gateway/trial"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "inside" { // where there is no toolward-inside: only engines call it
		os.Exit(entry.Main(os.Args[1:2], os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "run" { // where there is no toolward-run: only shells of guarded agents call it
		os.Exit(runclient.Main(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// commandLine is the whole command line as one value.
type commandLine struct {
	Home string `help:"State directory." env:"TOOLWARD_HOME" placeholder:"DIR" type:"path"`
	JSON bool   `name:"json" help:"Print JSON."`

	Up        upCommand        `cmd:"" help:"Run the gateway and its web console."`
	MCP       mcpCommand       `cmd:"" name:"mcp" help:"Serve MCP on standard input and output, as a thin client of the running gateway."`
	Hook      hookCommand      `cmd:"" help:"Decide one hook event of a guarded agent (what installed hooks call)."`
	Report    reportCommand    `cmd:"" help:"Say what past sessions of agents would have asked, run and stopped. Reads their transcripts; runs nothing."`
	Install   installCommand   `cmd:"" help:"Put Toolward in front of an agent."`
	Uninstall uninstallCommand `cmd:"" help:"Remove Toolward's hooks from an agent."`

	TUI       tuiCommand       `cmd:"" name:"tui" help:"Answer calls in this terminal, and see decisions, sessions and grants."`
	Approvals approvalsCommand `cmd:"" help:"Calls that wait for a person."`
	Grants    grantsCommand    `cmd:"" help:"Remembered answers."`
	Explain   explainCommand   `cmd:"" help:"Say what would happen to a call, and why. Without a tool: all of them."`
	Level     levelCommand     `cmd:"" help:"How tense a session is."`
	Audit     auditCommand     `cmd:"" help:"The record of every decision."`
	Undo      undoCommand      `cmd:"" help:"Take back what calls did to workspaces. Alone: list them."`
	Token     tokenCommand     `cmd:"" help:"Tokens of agents that come over HTTP."`
	Devices   devicesCommand   `cmd:"" help:"Devices that connect over the gateway protocol."`
	Login     loginCommand     `cmd:"" help:"Sign this terminal in, so that it may answer approvals."`
	Logout    logoutCommand    `cmd:"" help:"Sign this terminal out."`
	Policy    policyCommand    `cmd:"" help:"Try a policy: on cases, on what was recorded."`
	Shell     shellCommand     `cmd:"" help:"What shell commands would start and do."`
	Sandbox   sandboxCommand   `cmd:"" help:"Where commands run, confined."`
	Config    configCommand    `cmd:"" help:"The configuration file."`
	Import    importCommand    `cmd:"" help:"Take over another product's settings about tools."`
	Doctor    doctorCommand    `cmd:"" help:"Check the installation; runs a canary through every installed hook."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
	Complete  completeCommand  `cmd:"" name:"completion" help:"Print a shell completion script."`
}

// newParser makes a parser of the command line.
func newParser(line *commandLine, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(line, append(options, kong.Name("toolward"), kong.Vars{
		"clients": strings.Join(installation.Clients(), ", "), "readable": strings.Join(trial.TranscriptClients(), ","),
	})...)
}

// run is the program without the process: it parses args, runs the command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var line commandLine
	exited := -1
	parser, err := newParser(&line,
		kong.Description("A tool firewall for AI agents: decides by policy, asks people, confines and keeps proof."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(stderr, "toolward:", err)
		return exitError
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // help was printed
		return exited
	}
	if err != nil {
		fmt.Fprintf(stderr, "toolward: %v\nhint: toolward --help\n", err)
		return exitUsage
	}
	home, err := config.Home(line.Home)
	// An export and a public key are all that it takes to verify one: on a machine without Toolward, too.
	if err != nil && parsed.Command() != "audit verify" {
		fmt.Fprintln(stderr, "toolward:", err)
		return exitError
	}
	inv := &invocation{Context: ctx, stdin: stdin, stdout: stdout, stderr: stderr, home: home, homeGiven: line.Home != "", json: line.JSON}
	return report(stderr, parsed.Run(inv, parser))
}
