package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/display"
	"github.com/toolward/toolward/gateway"
)

type upCommand struct {
	Listen          string `help:"Address of console and API; default 127.0.0.1:7411 or server.listen." placeholder:"HOST:PORT"`
	PassphraseStdin bool   `help:"Read the passphrase from standard input: set at first start, else checked."`
	Demo            bool   `help:"Play a short scripted agent through a real gateway, in a throw-away home." xor:"whose"`
	For             string `help:"Guard the agents of this user, from a user of its own: what toolward install --system starts." placeholder:"USER" xor:"whose"`
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
	log := display.NewLog(inv.stderr, level)
	if err := leaveNoDump(); err != nil {
		log.Warn("a crash may leave the gateway's memory, with keys in it, in a file", "err", err)
	}
	if err := hideProcess(); err != nil {
		log.Warn("programs of the same user can look into the gateway's memory", "err", err)
	}
	if err := closeInherited(); err != nil {
		log.Warn("files that were open at the start stay open", "err", err)
	}
	person, err := c.person(home, log)
	if err != nil {
		return err
	}
	stateDir := home
	if c.Demo {
		stateDir = filepath.Join(home, ".toolward")
		if err := prepareDemoHome(stateDir); err != nil {
			return err
		}
	}
	d, err := gateway.Open(ctx, gateway.Options{Home: stateDir, Person: person, Doors: true, Listen: c.Listen, Version: programVersion(), Log: log, Stop: stop})
	var wrong config.Problems
	if errors.As(err, &wrong) {
		return &exitErr{exitUnsound, err, "a gateway does not start on a guess; mend the file, or move it away for the defaults"}
	}
	if err != nil {
		return err
	}
	defer d.Close()
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	go gateway.TendMemory(ctx)
	fmt.Fprintf(inv.words(), "Toolward is up: %s\n", d.URL())
	if d.Observes() {
		fmt.Fprintln(inv.words(), "In "+gateway.ObserveWords+".")
	}
	if inv.json {
		if err := inv.printJSON(map[string]string{"console": d.URL()}); err != nil {
			return err
		}
	}
	greeted := make(chan error, 1)
	go func() { greeted <- c.greet(ctx, inv, d, home, log) }()
	defer keepEcho(inv.stdin)()
	for {
		select {
		case err := <-greeted:
			if err != nil {
				return err
			}
		case err := <-served:
			return err
		}
	}
}

// leaveNoDump keeps a crash from writing the memory of the gateway, in which keys are, to where programs of the same user
// read it. What it starts can raise the limit for itself.
func leaveNoDump() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	limit.Cur = 0
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
}

// keepEcho remembers how the terminal is set; calling what it returns puts it back. Whoever is interrupted while
// typing a passphrase would else be left with a terminal that shows nothing.
func keepEcho(in io.Reader) (restore func()) {
	file, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(file.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = term.Restore(int(file.Fd()), state) }
}

// greet signs the person in who sits here, and starts what runs besides the gateway.
func (c *upCommand) greet(ctx context.Context, inv *invocation, d *gateway.Gateway, home string, log *slog.Logger) error {
	attend, err := c.signIn(ctx, inv, d)
	if err != nil {
		return err
	}
	if err := c.tellCode(inv, home, d.SetupCode()); err != nil {
		return err
	}
	if attend != nil {
		go attend()
	}
	if c.Demo {
		go c.demo(ctx, inv, d, home, log)
	}
	return nil
}

// signIn sets the passphrase at the first start, and signs the person in who sits at this terminal. It returns what shows
// waiting calls here, or nil.
func (c *upCommand) signIn(ctx context.Context, inv *invocation, d *gateway.Gateway) (attend func(), err error) {
	if c.PassphraseStdin {
		secret, err := readLine(inv.stdin)
		if err != nil {
			return nil, err
		}
		return nil, d.EnterPassphrase(ctx, secret)
	}
	in, _ := inv.stdin.(*os.File)
	out, _ := inv.stdout.(*os.File)
	if in == nil || out == nil {
		return nil, nil
	}
	return d.Attendant(ctx, in, out)
}

// demo plays the scripted agent.
func (c *upCommand) demo(ctx context.Context, inv *invocation, d *gateway.Gateway, home string, log *slog.Logger) {
	workspace := filepath.Join(home, "project")
	if err := makeDemoWorkspace(workspace); err != nil {
		log.Error("demo", "err", err)
		return
	}
	stage := &demoStage{gateway: d, home: home, workspace: workspace, confined: d.SandboxesByDefault(), out: inv.stdout}
	if err := stage.play(ctx); err != nil {
		log.Error("demo", "err", err)
	}
}
