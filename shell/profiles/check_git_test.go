package profiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/toolward/toolward/shell"
)

// kindsOf gives the kinds of effects of a command whose words are parted by spaces, each once, in order of the alphabet.
func kindsOf(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	effects, known := Effects(words[0], words[1:])
	if !known {
		return "no profile"
	}
	var kinds []string
	for _, e := range effects {
		kinds = append(kinds, string(e.Kind))
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), " ")
}

// testKinds tests a table: kinds of effects, and below each the commands that have exactly these.
func testKinds(t *testing.T, table map[string][]string) {
	t.Helper()
	for want, commands := range table {
		for _, command := range commands {
			if got := kindsOf(t, command); got != want {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
	}
}

// testAsks tests that each command has at least one effect of the kind.
func testAsks(t *testing.T, kind shell.Kind, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if got := kindsOf(t, command); !slices.Contains(strings.Fields(got), string(kind)) {
			t.Errorf("%s: %q, want %q among them", command, got, kind)
		}
	}
}

func TestGitEveryday(t *testing.T) {
	testKinds(t, map[string][]string{
		"reads": {
			"git status", "git status -sb", "git status --short --branch", "git status --porcelain=v2 -uno --ignored",
			"git diff", "git diff --cached --stat", "git diff HEAD~3 -- src/a.go", "git diff main...feature --name-only",
			"git diff -U10 -w --word-diff=color a.go b.go", "git --no-pager diff --staged", "git diff -M90% --diff-filter=ACM",
			"git log", "git log -20 --oneline --graph --decorate --all", "git log -n5 -p -- src", "git log --pretty=format:%h%x09%s",
			"git log --since=yesterday --until now --author me --grep fix -i", "git log -L10,20:main.go", "git log --follow a.go",
			"git log -S needle -G regexp --pickaxe-all", "git log v1.0..HEAD --no-merges --first-parent --date=short",
			"git show", "git show HEAD^2 --stat", "git show -s --format=%ci abc1234", "git show HEAD:go.mod",
			"git blame -L1,5 -w -C a.go", "git grep -rn -e a --and -e b -- *.go", "git grep -iw -C3 needle", "git grep --count -l needle HEAD~5",
			"git ls-files -o --exclude-standard -z", "git ls-tree -r --name-only HEAD", "git rev-parse --show-toplevel",
			"git rev-parse --short=8 HEAD", "git rev-parse --verify -q main^{commit}", "git rev-list --count HEAD --not --remotes",
			"git describe --tags --always --dirty", "git shortlog -sn --all", "git reflog -10", "git reflog show main",
			"git stash list", "git stash show -p stash@{1}", "git worktree list --porcelain", "git remote -v", "git remote get-url origin",
			"git config user.name", "git config --get remote.origin.url", "git config --list --show-origin", "git config get user.name",
			"git cat-file -p HEAD", "git cat-file --batch-check", "git for-each-ref --sort=-committerdate --format=%(refname) refs/heads",
			"git show-ref --heads", "git merge-base --is-ancestor a b", "git name-rev HEAD", "git cherry -v main", "git range-diff main~3..a b..c",
			"git submodule status --recursive", "git check-ignore -v x", "git count-objects -vH", "git fsck --full", "git clean -nd",
			"git var GIT_AUTHOR_IDENT", "git -c color.ui=always -c core.quotePath=false status", "git -c core.pager=cat log",
			"git bundle verify x.bundle", "git branch -vv", "git branch -a", "git branch --merged main", "git branch --list x*", "git branch --show-current", "git tag", "git tag -l v1.*",
			"git tag -n3", "git tag --contains abc", "git tag -v v1", "git symbolic-ref --short HEAD", "git archive HEAD src", "git sparse-checkout list", "git lfs ls-files", "git verify-commit HEAD",
			"git --no-optional-locks -P status",
		},
		"reads writes": {"git bundle create x.bundle --all", "git archive -o x.tar HEAD"},
		"project reads writes": {
			"git stash", "git stash push -u -m wip -- src",
			"git add -A", "git add -p src/a.go", "git add -- -odd", "git add -u --verbose .",
			"git branch feature origin/main", "git branch -d merged", "git branch -m old new", "git branch --set-upstream-to=origin/x x", "git branch -v new",
			"git tag v1", "git tag -a v1 -m one", "git reset --soft v1~1", "git reset a.go", "git format-patch -3 -o out HEAD", "git symbolic-ref HEAD refs/heads/x",
			"git commit -m fix", "git commit -am fix -s", "git commit --amend --no-edit", "git commit -qF msg.txt", "git commit --fixup=HEAD~2",
			"git commit --allow-empty -m x --author=me<me@x>", "git am -3 x.patch", "git -c user.name=x -c user.email=y commit -m x",
			"git commit -m x --no-gpg-sign",
		},
		"writes": {"git config user.email me@example.com", "git config --local core.autocrlf false", "git lfs track *.bin"},
		"project writes": {
			"git stash pop", "git stash apply stash@{0}", "git rm --cached big.bin",
			"git mv a b", "git reset --soft HEAD~1", "git reset -q HEAD", "git restore --staged .", "git restore a.go", "git notes add -m x HEAD",
			"git worktree prune", "git restore --source HEAD~2 -- src/a.go",
			"git checkout main", "git checkout -b feature/x origin/main", "git checkout --detach HEAD~1", "git checkout -- a.go",
			"git checkout HEAD~2 -- src/a.go", "git checkout -", "git switch -c feature", "git switch -", "git switch --detach v1",
			"git merge --no-ff feature -m x", "git merge --abort", "git merge -s ours -X theirs old", "git rebase main", "git rebase --continue",
			"git -c core.editor=true rebase --continue", "git rebase -i --autosquash HEAD~3", "git rebase --onto main a b",
			"git cherry-pick -x abc1234", "git cherry-pick -n a b", "git revert --no-edit -m1 HEAD", "git bisect start HEAD v1", "git bisect good",
			"git worktree add ../wt -b wt main", "git gc --auto",
		},
		"network writes": {"git clone https://github.com/a/b", "git clone --depth 1 -b main git@github.com:a/b.git dst"},
		"network project writes": {
			"git fetch", "git fetch origin --prune --tags", "git fetch --all -p", "git fetch origin main:refs/remotes/origin/main", "git pull", "git pull --rebase --autostash origin main", "git pull --ff-only", "git submodule update --init --recursive",
		},
		"network project reads": {"git push", "git push -u origin HEAD", "git push --tags", "git push origin main:main --follow-tags"},
		"network":               {"git ls-remote --heads origin", "git remote show origin"},
		"config":                {"git remote add up https://x.example/y", "git remote set-url origin x", "git config alias.x status", "git config --global user.name x", "git config --unset user.name", "git config set core.editor vi", "git config core.fsmonitor x", "git config --edit", "git lfs install"},
		"":                      {"git --version", "git version", "git help log", "git"},
	})
	// ls-remote changes nothing here.
	if got := kindsOf(t, "git ls-remote"); got != "network" {
		t.Errorf("git ls-remote: %q", got)
	}
}

func TestGitAsks(t *testing.T) {
	testAsks(t, shell.Evaluates,
		"git -c core.fsmonitor=x status", "git -c core.hooksPath=./h commit -m x", "git -c CORE.sshCommand=x fetch", "git -c alias.x=!id x",
		"git -c core.pager=less log", "git -c diff.external=x diff", "git -c filter.x.clean=y add a", "git -c include.path=x status",
		"git -c safe.directory=* status", "git -c core.editor=vi commit", "git -c color.x.y.z=1 -c url.ext::.insteadOf=h status", "git -c protocol.ext.allow=always fetch",
		"git --config-env=core.pager=X log", "git --config-env core.pager=X log", "git --exec-path=. status", "git -p log", "git --paginate log",
		"git diff --ext-diff", "git log -p --textconv", "git show --ext-diff HEAD", "git grep -Oless x", "git grep -nOless x", "git grep -O x",
		"git grep --open-files-in-pager=id x", "git grep --open-files-in-pager x", "git cat-file --filters HEAD:a", "git cat-file --textconv HEAD:a",
		"git ls-remote --upload-pack=id x", "git ls-remote --exec id x", "git fetch --upload-pack id origin", "git pull --upload-pack=id",
		"git clone -u id x y", "git clone --upload-pack=id x", "git clone --template=t x", "git clone -c core.sshCommand=x h:y",
		"git push --receive-pack=id", "git push --exec=id origin", "git rebase -x id main", "git rebase --exec=id main", "git rebase -ix id main",
		"git submodule foreach id", "git archive --exec=id --remote=x HEAD",
	)
	testAsks(t, shell.Destroys,
		"git reset --hard", "git reset --hard HEAD~1", "git reset --merge", "git checkout -- .", "git checkout .", "git checkout -f main", "git checkout --force",
		"git checkout HEAD -- *", "git checkout :/", "git checkout -B main x", "git restore .", "git restore ./", "git restore :/", "git restore *.go",
		"git restore -SW .", "git switch -f main", "git switch --discard-changes main", "git switch -C main", "git clean -fdx", "git clean -f src",
		"git clean --force", "git clean -ffd -e x", "git clean", "git branch -D main", "git branch -d -f x", "git branch -df x", "git branch -Dr origin/x", "git branch --delete --force x",
		"git branch -f main HEAD~9", "git branch -M a b", "git tag -d v1", "git tag -f v1", "git stash drop", "git stash clear", "git reflog expire --all",
		"git reflog delete HEAD@{1}", "git gc --prune=now", "git prune", "git push -f", "git push --force origin x", "git push -uf origin x", "git push --force-with-lease",
		"git push --force-with-lease=x:y origin", "git push origin +main", "git push origin :old", "git push origin --delete old", "git push -d origin old",
		"git push --mirror", "git push --prune origin", "git fetch origin +a:b", "git fetch -f origin a:b", "git worktree remove -f x", "git notes prune",
		"git update-ref -d refs/heads/x", "git symbolic-ref -d HEAD", "git submodule deinit -f x", "git submodule update --force",
	)
	testAsks(t, shell.Unknown,
		"git st", "git diff --outp=x", "git ls-remote --upload-pa=id x", "git status --frob", "git --git-dir=x status", "git --git-dir x status",
		"git --work-tree=/ status", "git --bare log", "git commit --no-verify -m x", "git commit -nm x", "git push --no-verify", "git merge -s evil x", "git merge --strategy=evil x",
		"git rebase -sevil x", "git pull -s evil", "git fetch ext::id", "git clone ext::id x", "git clone ext::sh%20-c%20id", "git push ext::id main", "git fetch foo://x/y", "git remote frob",
		"git difftool", "git mergetool", "git filter-branch --all", "git credential fill", "git send-email x", "git instaweb", "git daemon", "git gui",
		"git apply --unsafe-paths p", "git bisect visualize", "git worktree frob", "git fetch --stdin", "git update-ref --stdin", "git help -w log",
		"git checkout --pathspec-from-file=x", "git clone -oProxyCommand=id -x", "git clone ssh://-oProxyCommand=id/x", "git ls-remote -- -x", "git submodule add ext::id x",
	)
}

func TestGitPlaces(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"git -C sub -C deeper log", "enters sub (-C); enters deeper (-C); reads ."},
		{"git diff --no-index --output=../x /etc/passwd b", "writes ../x (--output); reads /etc/passwd; reads b; reads ."},
		{"git diff -O../order", "reads ../order (-O); reads ."},
		{"git show HEAD:.env", "reads .env; reads ."},
		{"git show main:../x", "reads ../x; reads ."},
		{"git show :0:a.pem", "reads a.pem; reads ."},
		{"git diff :(top)x :!y", "reads x; reads y; reads ."},
		{"git diff HEAD~2..abcdef1^", "reads ."},
		{"git diff x/../../y", "reads x/../../y; reads ."},
		{"git blame --contents=/etc/passwd a", "reads /etc/passwd (--contents); reads a; reads ."},
		{"git grep -f/etc/passwd", "reads /etc/passwd (-f); reads ."},
		{"git commit -tx -F /etc/passwd", "reads x (-t); reads /etc/passwd (-F); writes .; project; reads ."},
		{"git config -f /etc/x a.b c", "config (a.b c); writes /etc/x"},
		{"git config --file=x --list", "reads x"},
		{"git fetch ../other main", "reads ../other; writes .; project"},
		{"git clone /srv/x y", "reads /srv/x; writes y"},
		{"git clone file:///srv/x", "reads /srv/x; writes x"},
		{"git clone --separate-git-dir=/x u@h.example:p/q y", "writes /x (--separate-git-dir); network h.example (u@h.example:p/q); writes y"},
		{"git clone https://u:p@h.example:8443/x", "network h.example:8443 (https://u:p@h.example:8443/x); writes x"},
		{"git push ../other main", "writes ../other; enters ../other; project; reads ."},
		{"git push --repo=../other", "writes ../other; enters ../other; project; reads ."},
		{"git worktree add /srv/x", "writes /srv/x; writes .; project"},
		{"git apply --directory=../x a.patch", "writes ../x (--directory); reads a.patch; writes .; project"},
		{"git checkout v1 -- .github/x", "writes .github/x; writes .; project"},
		{"git bisect run make test", "runs make test; writes .; project"},
		{"git rebase -x id main", "evaluates id (-x); writes .; project"},
		{"git am -c", "writes .; project"},
	} {
		words := strings.Fields(c.command)
		got := strings.Join(effectsOf(t, words...), "; ")
		if !sameEffects(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.command, got, c.want)
		}
	}
}

// sameEffects compares effects in any order.
func sameEffects(a, b string) bool {
	x, y := strings.Split(a, "; "), strings.Split(b, "; ")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// joined is how tables write several effects.
func joined(effects []string) string { return strings.Join(effects, "; ") }
