package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/toolward/toolward/bridge/ticket"
	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/server/door"
)

// runProgram stands in a client's shell for a command that runs inside.
const runProgram = "toolward-run"

// openTickets makes what commands of clients are started by that are confined, when the first is to be. Without toolward-run there is nothing
// that could stand for them: then it is nil, and clients run their commands themselves, judged as before.
func (g *Gateway) openTickets() *ticket.Office {
	ctx, cancel := context.WithTimeout(context.Background(), buildPatience)
	defer cancel()
	program, err := companion.Find(ctx, runProgram)
	if err != nil {
		g.log.Warn("the commands of guarded agents run on the machine, not in sandboxes: there is no toolward-run", "err", err)
		return nil
	}
	words := []string{quoted(program.Path)}
	for _, arg := range program.Args {
		words = append(words, quoted(arg))
	}
	words = append(words, "--home", quoted(g.home))
	office, err := ticket.Open(ticket.Options{
		Program: strings.Join(words, " "), Start: g.toolbox.StartForClient, UserOf: userOf, Log: g.log,
	})
	if err != nil {
		g.log.Error("the commands of guarded agents run on the machine, not in sandboxes", "err", err)
		return nil
	}
	return office
}

// issuesTickets reports whether commands of clients can be started here in the place of their shells.
func (g *Gateway) issuesTickets() bool { return g.tickets != nil && g.tickets() != nil }

// quoted is a word that every POSIX shell reads as this text.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func userOf(ctx context.Context) (uid int, ok bool) {
	peer, ok := door.PeerOf(ctx)
	return int(peer.UID), ok
}

// serveRun serves toolward-run.
func (g *Gateway) serveRun(w http.ResponseWriter, r *http.Request) {
	if !g.issuesTickets() {
		http.NotFound(w, r)
		return
	}
	g.tickets().ServeHTTP(w, r)
}

// holdsSecret reports whether a text holds a secret.
func (g *Gateway) holdsSecret(text string) bool {
	_, found := g.secrets.Clean(text)
	return found
}
