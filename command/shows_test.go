package command

import (
	"strings"
	"testing"
)

// What prints how something was set up prints the passwords that it was given.
func TestWhatShowsSettingsReadsSecrets(t *testing.T) {
	w := newWorld(t, map[string]string{
		"/ws/.git/HEAD": "f", "/ws/.git/config": "t:[remote \"origin\"]\n\turl = https://ana:hunter2@git.example/a\n[user]\n\tname = Ana\n",
	})
	w.asks(t, strings.Split(`docker inspect web
docker container inspect web
podman inspect web
docker inspect -f '{{.Config.Env}}' web
docker inspect --format '{{json .}}' web
docker history --no-trunc web
docker compose config
docker compose convert
docker-compose config
git config --list
git config -l
git config list
git config --get remote.origin.url
git config remote.origin.url
git config --get-regexp remote
git config http.https://x.extraheader
git remote -v
git remote get-url origin
git var -l
kubectl get secret
kubectl get pods,secrets -o yaml
gh auth token
printenv
printenv HOME
env
set
export -p
npm config get //registry.npmjs.org/:_authToken
pnpm config list
yarn config list
pip config list
terraform output -json
terraform show -json
systemctl show web
ps auxe
ps ue
ps auxwwe
ps axeww
ps -o pid,environ
ps auxE
ps -E
docker top web e
docker top web aux e
docker container top web -- axe
make -p
make -np
make --print-data-base`, "\n")...)
	w.runs(t, strings.Split(`docker inspect --format '{{.State.Status}}' web
docker inspect -f '{{json .NetworkSettings.Ports}} {{.Name}}' web
docker compose config -q
docker compose config --services
docker network inspect web
git config user.name
git config --get user.email
npm config get registry
ps aux
ps -ef
ps axo pid,args
docker top web
docker top web aux
make -n build`, "\n")...)
}

// git's own settings show nothing where no password stands in them.
func TestSettingsWithoutSecretsAreShown(t *testing.T) {
	for name, c := range map[string]struct {
		repository, home string
		asks             bool
	}{
		"plain":            {"t:[remote \"origin\"]\nurl = git@git.example:a\n", "t:[user]\nname = Ana\n", false},
		"ssh by address":   {"t:[remote \"origin\"]\nurl = ssh://git@git.example/a\n", "f", false},
		"a token":          {"t:[remote \"origin\"]\nurl = https://ghp_0123456789abcdefghij@git.example/a\n", "f", true},
		"of the person":    {"t:[core]\nbare = false\n", "t:[http]\n\textraHeader = \"Authorization: x\"\n", true},
		"by another file":  {"t:[core]\nbare = false\n", "t:[includeIf \"gitdir:~/x\"]\npath = more\n", true},
		"that holds none":  {"t:[core]\nbare = false\n", "t:[include]\npath = less\n", false},
		"in a replacement": {"t:[core]\nbare = false\n", "t:[url \"https://ana:hunter2@git.example/\"]\ninsteadOf = https://git.example/\n", true},
	} {
		w := newWorld(t, map[string]string{
			"/ws/.git/HEAD": "f", "/ws/.git/config": c.repository, "/home/dev/.gitconfig": c.home,
			"/home/dev/more": "t:[github]\ntoken = x\n", "/home/dev/less": "t:[user]\nname = x\n",
		})
		try := w.runs
		if c.asks {
			try = w.asks
		}
		t.Run(name, func(t *testing.T) { try(t, "git config --list", "git config --get-regexp url") })
	}
}

// A signature says that a person has seen what it is under.
func TestSigningAsks(t *testing.T) {
	w := newWorld(t, map[string]string{"/ws/.git/HEAD": "f", "/ws/.git/config": "f", "/ws/a": "f"})
	w.asks(t, "git commit -S -m x", "git commit -qSm x", "git commit --gpg-sign=k -m x", "git tag -s v1 -m x", "git tag -u k v1 -m x", "git tag --sign v1",
		"git merge -S x", "git rebase -S main", "git cherry-pick --gpg-sign x", "git revert -S x", "git push --signed", "git commit-tree -S x",
		"git -c commit.gpgsign=true commit -m x", "git config commit.gpgsign true", "gpg --sign a", "gpg -s a", "gpg --clearsign a", "gpg --detach-sign a",
		"ssh-keygen -Y sign -f k -n file a", "cosign sign x", "minisign -Sm a", "signify -S -s k -m a", "jarsigner x", "codesign x")
	w.runs(t, "git commit -m x", "git commit --no-gpg-sign -m x", "git tag -a v1 -m x", "git merge x", "git push")

	w.files["/home/dev/.gitconfig"] = "t:[commit]\n\tgpgSign = true\n[tag]\n\tforceSignAnnotated\n"
	w.asks(t, "git commit -m x", "git commit --amend", "git rebase main", "git tag -a v1 -m x")
	w.asks(t, "git -c commit.gpgsign=false -c commit.gpgsign=true commit -m x", "git -c user.name=x commit -m x", "git -c tag.gpgsign=false tag -a v1 -m x")
	w.runs(t, "git -c commit.gpgsign=false commit -m x", "git commit --no-gpg-sign -m x", "git status", "git log", "git add a", "git tag")
}

// rustup is what it is called: a link that has the name of cargo is cargo.
func TestCargoThroughRustup(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/rustup": "x", "/usr/bin/cargo": "l:rustup", "/usr/bin/rustc": "l:rustup", "/usr/bin/rustfmt": "l:rustup", "/ws/Cargo.toml": "f", "/ws/src/a.rs": "f"})
	w.runs(t, "cargo build", "cargo test --all", "cargo run", "cargo clippy", "cargo fmt --check", "rustfmt --check src/a.rs", "rustup show")
	w.asks(t, "cargo install ripgrep", "rustup update", "rustup toolchain install nightly", "rustc --help -Clinker=./x src/a.rs")
}
