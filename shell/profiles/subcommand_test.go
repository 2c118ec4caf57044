package profiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/shell"
)

// Options of a program stand before, between and behind the words of its subcommand, as the program has it; an option
// that is not known there is unknown, and its value is never taken for the subcommand.
func TestOptionsAmongSubcommands(t *testing.T) {
	for line, want := range map[string]string{
		"docker compose -f dev.yml ps":               "reads dev.yml (-f), reads .",
		"docker compose -f a.yml -p x logs web":      "reads a.yml (-f), reads .",
		"docker compose --file=a.yml --profile p ps": "reads a.yml (--file), reads .",
		"docker --debug compose ps":                  "reads .",
		"docker compose ps --all":                    "reads .",
		"docker-compose -f a.yml ps":                 "reads a.yml (-f), reads .",
		"git -c core.quotepath=off status":           "reads .",
		"git --no-pager log --oneline":               "reads .",
		"kubectl --context x get pods":               "network",
		"kubectl -n x get -o wide pods":              "network",
		"kubectl get pods --context x":               "network",
		"helm --namespace x list":                    "network",
		"npm --prefix web test":                      "enters web (--prefix), project",
	} {
		if got := effectList(commandEffects(t, line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for _, line := range commandLines(`
		docker compose -f a.yml up
		go tool pprof cpu.out
		go tool pprof -top http://localhost:6060/debug/pprof/heap
		go tool pprof -http=:8080 cpu.out
		fd -x rm
		fd . /etc -x rm
		flask run --host 0.0.0.0
		uvicorn --app-dir /tmp x:app
		docker compose --project-directory /tmp ps
		docker compose --unknown ps
		docker compose -f a.yml -- ps
		docker compose -f a.yml exec web ps
		docker -H tcp://10.0.0.1 ps
		docker --context x ps
		docker -H ps run alpine
		docker --config ps run alpine
		docker -l ps run alpine
		docker run -f ps
		git -C status clean -fdx
		git -c status clean -fdx
		git --exec-path=status log
		git --git-dir status log
		git --namespace status log
		kubectl --context get delete pod x
		kubectl -n get delete pod x
		kubectl --kubeconfig get get pods
		helm -n list uninstall x
		gh -R list pr merge 1
		npm --prefix test publish
		npm --registry ci publish
		cargo --config run publish
		go -C test run x@latest
		terraform -chdir=plan destroy
		pnpm -C test publish
		yarn --cwd test publish`) {
		effects := commandEffects(t, line)
		if !slices.ContainsFunc(effects, asks) {
			t.Errorf("%s: %s", line, effectList(effects))
		}
	}
}

func effectList(effects []shell.Effect) string {
	var list []string
	for _, e := range effects {
		text := e.String()
		if e.Dir != "" {
			text = "{" + e.Dir + "} " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
