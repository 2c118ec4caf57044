package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/toolward/toolward/client/local"
	"github.com/toolward/toolward/display"
)

type loginCommand struct {
	PassphraseStdin bool   `help:"Read the passphrase from standard input instead of the terminal."`
	Setup           string `help:"Set the first passphrase, with the code that toolward up has printed." placeholder:"CODE"`
}

// Run signs this terminal in. The daemon remembers the shell that started this command, not a secret: nothing is
// left behind that an agent could use.
func (c *loginCommand) Run(inv *invocation) error {
	secret, err := c.secret(inv)
	if err != nil {
		return &exitErr{exitError, err, "type it, or use --passphrase-stdin"}
	}
	var signed local.SignedIn
	if c.Setup != "" {
		signed, err = inv.daemon().SetUp(inv, c.Setup, secret)
	} else {
		signed, err = inv.daemon().SignIn(inv, secret)
	}
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(signed)
	}
	if signed.Note != "" {
		fmt.Fprintf(inv.stdout, "The passphrase is set. This terminal is not signed in: %s\n", signed.Note)
		return nil
	}
	fmt.Fprintf(inv.stdout, "Signed in as %s, in this terminal only.\n", signed.Name)
	return nil
}

func (c *loginCommand) secret(inv *invocation) (string, error) {
	switch {
	case c.PassphraseStdin:
		return readLine(inv.stdin)
	case c.Setup != "":
		return readNewSecret(inv.stdin, inv.stderr)
	default:
		return readSecret(inv.stdin, inv.stderr, "Passphrase: ")
	}
}

type logoutCommand struct{}

// Run signs this terminal out.
func (logoutCommand) Run(inv *invocation) error {
	if err := inv.daemon().SignOut(inv); err != nil {
		return err
	}
	return inv.done("signed-out", "Signed out.")
}

type tokenCommand struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token; it is shown once."`
	List   tokenListCommand   `cmd:"" help:"List tokens."`
	Revoke tokenRevokeCommand `cmd:"" help:"End a token at once."`
}

type tokenCreateCommand struct {
	Agent     string        `help:"The agent that comes with it." required:"" xor:"use"`
	Metrics   bool          `help:"It reads /metrics, and is no agent's." required:"" xor:"use"`
	Gateway   bool          `help:"It opens the gateway protocol, and is no agent's." required:"" xor:"use"`
	Workspace string        `help:"The directory that is the agent's own." type:"path"`
	Owner     bool          `help:"Calls count as the owner's: owner-only tools are visible."`
	Name      string        `help:"What it is for."`
	Life      time.Duration `help:"When it expires; default never."`
}

// Run makes a token.
func (c *tokenCreateCommand) Run(inv *invocation) error {
	if (c.Workspace == "") != (c.Metrics || c.Gateway) {
		return &exitErr{exitUsage, errors.New("an agent's token needs --workspace, the others have none"), "toolward token create --help"}
	}
	wanted := local.NewToken{Metrics: c.Metrics, Gateway: c.Gateway, Agent: c.Agent, Workspace: c.Workspace, Owner: c.Owner, Name: c.Name}
	if c.Life > 0 {
		wanted.Life = c.Life.String()
	}
	made, err := inv.daemon().CreateToken(inv, wanted)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(made)
	}
	fmt.Fprintln(inv.stdout, made.Secret)
	if c.Metrics {
		fmt.Fprintln(inv.stderr, "This is the only time it is shown. It reads /metrics and nothing else.")
		return nil
	}
	if c.Gateway {
		fmt.Fprintln(inv.stderr, "This is the only time it is shown. It opens the gateway protocol; it does not answer approvals.")
		return nil
	}
	fmt.Fprintf(inv.stderr, "This is the only time it is shown. Agent %s, workspace %s.\n", made.Agent, made.Workspace)
	return nil
}

type tokenListCommand struct{}

// Run lists tokens.
func (tokenListCommand) Run(inv *invocation) error {
	list, err := inv.daemon().Tokens(inv)
	if err != nil {
		return err
	}
	if inv.json {
		return inv.printJSON(list)
	}
	return inv.table("ID\tBEGINS\tAGENT\tOWNER\tWORKSPACE\tLAST USED\tSTATE", func(row func(...any)) {
		for _, t := range list.Tokens {
			state := "valid"
			switch {
			case !t.Revoked.IsZero():
				state = "revoked"
			case !t.Expires.IsZero() && time.Now().After(t.Expires):
				state = "expired"
			}
			agent := t.Agent
			if t.ForMetrics() {
				agent = "(metrics)"
			}
			if t.Gateway {
				agent = "(gateway protocol)"
			}
			row(t.ID, t.Prefix+"…", agent, t.Owner, t.Workspace, when(t.LastUsed), state)
		}
	})
}

type tokenRevokeCommand struct {
	ID string `arg:"" help:"Id of the token, or its first characters."`
}

// Run ends a token.
func (c *tokenRevokeCommand) Run(inv *invocation) error {
	if err := inv.daemon().RevokeToken(inv, c.ID); err != nil {
		return err
	}
	return inv.done("revoked", "Revoked.")
}

// table prints aligned columns; every cell is shown truthfully.
func (inv *invocation) table(head string, rows func(row func(...any))) error {
	w := tabwriter.NewWriter(inv.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, cell := range cells {
			texts[i] = display.Line(fmt.Sprint(cell))
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	})
	return w.Flush()
}

// when shows a time for people; the zero time is "never".
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// readArgument returns the text itself, or the content of a file for "@path", or standard input for "@-".
func readArgument(text string, stdin io.Reader) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	switch {
	case !ok:
		return text, nil
	case name == "-":
		raw, err := io.ReadAll(stdin)
		return string(raw), err
	default:
		raw, err := os.ReadFile(filepath.Clean(name))
		return string(raw), err
	}
}
