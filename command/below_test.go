package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolward/toolward"
	"github.com/toolward/toolward/command/allowlist"
)

// withKeys is a project and a home with keys in them, and processes.
func withKeys(t *testing.T, more map[string]string) *world {
	files := map[string]string{
		"/ws/.git/HEAD": "f", "/ws/.env": "f", "/ws/src/a.go": "f", "/ws/conf/tls/server.key": "f", "/ws/app/node_modules/p/test.pem": "f", "/ws/empty": "f",
		"/home/dev/.config/gh/hosts.yml": "f", "/home/dev/.config/app/x": "f", "/home/dev/.docker/config.json": "f", "/home/dev/notes/a.txt": "f",
		"/home/dev/.local/share/keyrings/login.keyring": "f", "/home/other/.ssh/id_rsa": "f", "/home/dev/.toolward/state.db": "f",
		"/proc/77/environ": "f", "/proc/77/cmdline": "f", "/srv/site/index.html": "f",
	}
	for _, name := range strings.Fields("tar zip diff strings base64 rsync stat du wc tree ag 7z cpio") {
		files["/usr/bin/"+name] = "x"
	}
	for name, what := range more {
		files[name] = what
	}
	return newWorld(t, files)
}

// What reads a directory reads the keys in it, though nobody names them.
func TestReadersOfDirectories(t *testing.T) {
	w := withKeys(t, map[string]string{"/ws/l/key": "l:/home/dev/.ssh/id_ed25519"})
	w.asks(t, strings.Split(`grep -rsa --include=environ KEY /proc
rg KEY /proc
find /proc/77 -name environ -exec cat {} +
find /proc/77/fd -lname '*state.db*' -exec strings {} +
grep -r token ~/.config
find ~/.config -type f -exec cat {} +
find ~/.config | xargs cat
cp -r ~/.config/gh ./gh
cp -r ~/.docker d
cp -r /home/dev/.local/share x
cp -r /home/other x
git diff --no-index empty ~/.docker
git grep --no-index -e . ~/.config
git grep --untracked KEY
tar cf x.tar ~/.config
tar cf - . | base64
tar czf x.tgz -C /home/dev .config
zip -r x.zip ~/.config
diff -rN empty ~/.config
rsync -a ~/.config x
rg -uu token ~/.config
rg --hidden KEY
rg KEY conf
grep -r KEY .
grep -r KEY $PWD
grep -r KEY conf
grep -r --exclude='.e*' KEY .
grep -r --exclude='*.key' --exclude='.env' --include='.env' KEY .
grep -r --include=.env KEY .
cd conf && grep -r KEY .
find . -name .env -exec cat {} +
find . -name '.e*' -exec cat {} +
find . -type f -exec grep KEY {} +
find . -name '*.go' -o -type f -exec cat {} +
find . -exec cat {} + -name '*.go'
find . ! -name '*.go' -exec cat {} +
find . ! \( -name '*.md' \) -exec cat {} +
find l -type l -exec cat {} +
ls -A | xargs cat
ls l | xargs cat
git ls-files -o | xargs cat
git ls-files --others | xargs grep KEY
git add -Af
git add --force .
git stash -a
timeout 5 grep -r KEY .
bash -c 'grep -r KEY .'
find . -name tls -exec grep -r KEY {} +`, "\n")...)
	w.runs(t, strings.Split(`grep -r TODO src
grep -rn --include='*.go' TODO .
grep -rn --exclude='.env*' --exclude-dir conf TODO .
grep -r TODO app
grep -r x ~/notes
grep -r x /srv/site
rg TODO src
rg --files
ls -la . ~/.config
du -sh .
tree -a
find . -name .env
find . -name '*.go' -exec grep -n TODO {} +
find . \( -name '*.go' -o -name '*.ts' \) -exec wc -l {} +
find . -type f -not -path './app/*' -name '*.go' -exec cat {} +
find . -name '*.go' | xargs grep -n TODO
find . -type f -exec ls -l {} +
find . | xargs stat
git ls-files | xargs grep -n TODO
git grep TODO
git diff
git add -A
tar czf x.tgz src
cp -r src copy
diff -r src app`, "\n")...)
}

// An entry for reading does not cover it, one with exactly these words does.
func TestReadersOfDirectoriesUnderEntries(t *testing.T) {
	w := withKeys(t, nil)
	for _, c := range []struct {
		entry   allowlist.Entry
		command string
		want    toolward.Verdict
	}{
		{allowlist.Entry{Pattern: "/usr/bin/grep", Effects: []string{allowlist.EffectRead}}, "grep -r token /home/dev/.config", toolward.Ask},
		{allowlist.Entry{Pattern: "/usr/bin/cp"}, "cp -r /home/dev/.docker d", toolward.Ask},
		{allowlist.Entry{Pattern: "/usr/bin/grep", Argv: []string{"/usr/bin/grep", "-r", "token", "/home/dev/.config"}}, "grep -r token /home/dev/.config", toolward.Allow},
	} {
		s := onMiss("")
		s.Entries = []allowlist.Listed{{Entry: c.entry}}
		if a := w.evaluate(t, s, c.command); verdict(a) != c.want {
			t.Errorf("%+v: %s: %s %v, want %s", c.entry, c.command, verdict(a), codes(a), c.want)
		}
	}
}

// What nobody can look through asks.
func TestReadersOfManyFiles(t *testing.T) {
	files := map[string]string{}
	for i := range maxBelow {
		files[fmt.Sprintf("/ws/many/%05d", i)] = "f"
	}
	if w := withKeys(t, files); verdict(w.evaluate(t, onMiss(Developer), "grep -r x many")) != toolward.Ask {
		t.Error("it was looked through")
	}
}
