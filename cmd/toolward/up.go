package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/toolward/toolward/device"
	"github.com/toolward/toolward/tui"
)

type upCommand struct {
	Listen          string `help:"Address of console and API; default 127.0.0.1:7411 or server.listen." placeholder:"HOST:PORT"`
	PassphraseStdin bool   `help:"Read the passphrase from standard input: set at first start, else checked."`
	Demo            bool   `help:"Play a short scripted agent through a real gateway, in a throw-away home."`
	Verbose         bool   `short:"v" help:"Log more."`
}

// Run runs the gateway until it is interrupted.
func (c *upCommand) Run(inv *invocation) (err error) {
	home := inv.home
	if c.Demo {
		if home, err = os.MkdirTemp("", "toolward-demo-"); err != nil {
			return err
		}
		defer os.RemoveAll(home)
	}
	ctx, stop := context.WithCancel(inv)
	defer stop()
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(inv.stderr, &slog.HandlerOptions{Level: level}))
	stateDir := home
	if c.Demo {
		stateDir = filepath.Join(home, ".toolward")
		if err := prepareDemoHome(stateDir); err != nil {
			return err
		}
	}
	d, err := newDaemon(ctx, daemonOptions{home: stateDir, listen: c.Listen, log: log, stop: stop})
	if err != nil {
		return err
	}
	defer d.close()
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx) }()
	fmt.Fprintf(inv.stdout, "Toolward is up: %s\n", d.server.URL())
	person, err := c.signIn(ctx, inv, d)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // checking a passphrase takes memory that an idle daemon should not keep
	if isTerminal(inv.stdin) && person.IsPerson() {
		go c.attend(ctx, inv, d, person)
	}
	if c.Demo {
		go c.demo(ctx, inv, d, home)
	}
	return <-served
}

// signIn makes sure that a passphrase is set, and signs the person at this terminal in. Answering here needs the
// passphrase like anywhere else: an agent could start a gateway of its own on a terminal of its own.
func (c *upCommand) signIn(ctx context.Context, inv *invocation, d *daemon) (device.Authority, error) {
	if d.people.NeedsSetup() {
		return c.setUp(ctx, inv, d)
	}
	switch {
	case c.PassphraseStdin:
		secret, err := readLine(inv.stdin)
		if err != nil {
			return device.Authority{}, err
		}
		return d.people.SignInForeground(ctx, secret)
	case isTerminal(inv.stdin):
		fmt.Fprintln(inv.stdout, "Give the passphrase to answer calls here, or press Enter to answer in the console only.")
		for range 3 {
			secret, err := readSecret(inv.stdin, inv.stdout, "Passphrase: ")
			if err != nil || secret == "" {
				return device.Authority{}, err
			}
			person, err := d.people.SignInForeground(ctx, secret)
			if err == nil {
				return person, nil
			}
			fmt.Fprintln(inv.stdout, err)
		}
	}
	return device.Authority{}, nil
}

// setUp sets the first passphrase here, or prints the code with which it is set in the console.
func (c *upCommand) setUp(ctx context.Context, inv *invocation, d *daemon) (device.Authority, error) {
	secret, err := c.firstPassphrase(inv)
	if err != nil {
		return device.Authority{}, err
	}
	code := d.people.SetupCode()
	if secret == "" {
		fmt.Fprintf(inv.stdout, "First start: open the console and set your passphrase with this code: %s\n", code)
		return device.Authority{}, nil
	}
	if err := d.people.SetUp(ctx, "daemon terminal", code, secret); err != nil {
		return device.Authority{}, err
	}
	return d.people.SignInForeground(ctx, secret)
}

func (c *upCommand) firstPassphrase(inv *invocation) (string, error) {
	switch {
	case c.PassphraseStdin:
		return readLine(inv.stdin)
	case !isTerminal(inv.stdin):
		return "", nil
	}
	fmt.Fprintln(inv.stdout, "First start: choose a passphrase. It tells you from the agents that run under your user.")
	fmt.Fprintln(inv.stdout, "(Press Enter to set it in the console instead.)")
	for {
		secret, err := readNewSecret(inv.stdin, inv.stdout)
		if err == nil || errors.Is(err, io.EOF) {
			return secret, err
		}
		fmt.Fprintln(inv.stdout, err)
	}
}

// attend shows waiting calls on this terminal and takes answers.
func (c *upCommand) attend(ctx context.Context, inv *invocation, d *daemon, person device.Authority) {
	if err := tui.Attend(ctx, inv.stdin, inv.stdout, d.approver, person); err != nil && ctx.Err() == nil {
		d.log.Error("this terminal takes no more answers; use the console", "err", err)
	}
}

// demo plays the scripted agent.
func (c *upCommand) demo(ctx context.Context, inv *invocation, d *daemon, home string) {
	workspace := filepath.Join(home, "project")
	if err := makeDemoWorkspace(workspace); err != nil {
		d.log.Error("demo", "err", err)
		return
	}
	if err := playDemo(ctx, d.gateway, home, workspace, inv.stdout); err != nil {
		d.log.Error("demo", "err", err)
	}
}
