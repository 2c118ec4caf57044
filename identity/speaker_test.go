package identity

import (
	"errors"
	"strings"
	"testing"
)

var errWorkspace = errors.New("not a workspace")

// checked takes directories below /ws, and gives each its real path.
func checked(dir string) (string, error) {
	if !strings.HasPrefix(dir, "/ws") {
		return "", errWorkspace
	}
	return "/real" + dir, nil
}

func TestBearers(t *testing.T) {
	k := setUp(t, newMemory(), nil)
	_, by := signIn(t, k)
	create := func(spec TokenSpec) (string, Token) {
		t.Helper()
		secret, token, err := k.CreateToken(t.Context(), by, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		return secret, token
	}
	good, token := create(TokenSpec{Agent: "coder", Workspace: "/ws", Owner: true})
	moved, _ := create(TokenSpec{Agent: "coder", Workspace: "/elsewhere"})
	who, err := k.Bearer(t.Context(), good, checked)
	if want := (Speaker{Agent: "coder", Workspace: "/real/ws", Owner: true, TokenID: token.ID}); err != nil || who != want {
		t.Errorf("%+v, %v, want %+v", who, err, want)
	}
	for secret, want := range map[string]error{moved: errWorkspace, good + "x": ErrToken, "": ErrToken} {
		if who, err := k.Bearer(t.Context(), secret, checked); !errors.Is(err, want) || who != (Speaker{}) {
			t.Errorf("%q: %+v, %v, want %v", secret, who, err, want)
		}
	}
}

func TestLocalSpeakers(t *testing.T) {
	for name, test := range map[string]struct{ agent, configured, named, want string }{
		"names its own":               {"coder", "", "/ws/a", "/real/ws/a"},
		"may not leave a configured":  {"coder", "/ws/b", "/ws", "/real/ws/b"},
		"has the configured":          {"coder", "/ws/b", "", "/real/ws/b"},
		"has none":                    {"coder", "", "", ""},
		"has one that is refused":     {"coder", "", "/home", ""},
		"is configured with a bad":    {"coder", "/home", "/ws", ""},
		"would break out of its name": {"coder:x", "", "/ws/a", ""},
	} {
		who, err := Local(test.agent, test.configured, test.named, checked)
		want := Speaker{}
		if test.want != "" {
			want = Speaker{Agent: test.agent, Workspace: test.want}
		}
		if who != want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %+v, %v, want %+v", name, who, err, want)
		}
	}
}
