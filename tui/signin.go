package tui

import (
	tea "charm.land/bubbletea/v2"
)

const longestPassphrase = 1024

// askToSignIn shows the prompt. What was waiting is not shown to somebody who is not signed in.
func (c *console) askToSignIn(err error) {
	again := c.link == signedOut
	c.link = signedOut
	c.queue, c.front = queue{}, front{turn: c.front.turn + 1}
	for i := range c.lists {
		c.lists[i] = list{}
	}
	if again {
		if err != nil {
			c.say("", err.Error())
		}
		return
	}
	c.help, c.page, c.said = false, pageQueue, row{}
	c.signIn = signIn{line: line{most: longestPassphrase}}
	if c.wasLive {
		c.signIn.why = "The sign-in of this terminal has ended, as it does when the gateway restarts."
	} else if err != nil {
		c.say("", err.Error())
	}
}

func (c *console) signInKey(k tea.KeyPressMsg) tea.Cmd {
	s := &c.signIn
	switch k.String() {
	case "esc":
		return tea.Quit
	case "enter":
		if s.sent || s.line.text == "" {
			return nil
		}
		passphrase := s.line.text
		s.line.text, s.sent = "", true
		return c.ask(func(ctx patience) tea.Msg {
			name, err := c.gateway.SignIn(ctx, passphrase)
			return signedInMsg{name, err}
		})
	}
	s.line.key(k)
	return nil
}

// signedInMsg is what came of a passphrase.
type signedInMsg struct {
	name string
	err  error
}

func (c *console) signedIn(m signedInMsg) {
	c.signIn.sent = false
	if m.err != nil {
		c.say(red, m.err.Error())
		return
	}
	c.say(green, "Signed in as "+m.name+", in this terminal only.")
	c.again()
}
