package approval

import (
	"context"
	"testing"
	"time"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/redact"
)

// What a person approves is what runs, so a command must not hide its working parts behind what looks like a secret.
func TestACommandCannotHideInASecret(t *testing.T) {
	for _, test := range []struct {
		name, command string
		asked         bool
	}{
		{"no secret", "make test", true},
		{"an ordinary password", "git clone https://user:hunter2hunter2@example.org/x.git", true},
		{"two secrets", "curl https://a:hunter2hunter2@example.org https://b:tr0ub4dor@example.org", true},
		{"a token", "gh auth login --with-token ghp_0123456789abcdefghijABCDEFGHIJ456789", true},
		{"the mark itself", "echo '[hidden: url-password]' && ls", true},
		{"a command in a password", "curl https://user:a;rm${IFS}-rf${IFS}x@example.org/", false},
		{"a substitution in a password", "curl https://user:$(reboot)@example.org/", false},
		{"a pipe in a password", "curl https://user:a|sh@example.org/", false},
		{"a line in a key", "cat <<X\n-----BEGIN PRIVATE KEY-----\nX\n/tmp/x\n-----END PRIVATE KEY-----", false},
		{"beside an honest mark", "echo '[hidden: url-password]' https://user:a;reboot@example.org", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := open(t, newMemory(), func(o *Options) { o.Redact = redact.Text })
			attach(t, m, alice)
			q := question(func(r *toolward.Request, _ *toolward.Judgment) {
				r.Facts.Command = test.command
				r.Call.Detach = true
			})
			_, err := m.Ask(t.Context(), q)
			if test.asked && m.Count() != 1 {
				t.Errorf("not asked: %v", err)
			}
			if !test.asked && (m.Count() != 0 || code(t, err) != toolward.CodeValidation) {
				t.Errorf("%d questions, %v", m.Count(), err)
			}
		})
	}
}

// The same holds for what is typed into a process, which may be a shell, and for the environment of a command.
func TestInputCannotHideInASecret(t *testing.T) {
	m := open(t, newMemory(), func(o *Options) { o.Redact = redact.Text })
	attach(t, m, alice)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	hostile := "https://user:a;reboot@example.org"
	for name, change := range map[string]func(*toolward.Request, *toolward.Judgment){
		"typed into a process": func(r *toolward.Request, j *toolward.Judgment) {
			r.Params = toolward.NewParams([]byte(`{"data":"`+hostile+`"}`), map[string]any{"data": hostile})
			j.Class.Grant = toolward.GrantProcess
		},
		"in a command's environment": func(r *toolward.Request, _ *toolward.Judgment) {
			r.Facts.Command = "git log"
			r.Params = toolward.NewParams([]byte(`{"env":{"GIT_PAGER":"`+hostile+`"}}`), map[string]any{"env": map[string]any{"GIT_PAGER": hostile}})
		},
	} {
		if _, err := m.Ask(ctx, question(change)); code(t, err) != toolward.CodeValidation || m.Count() != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
