package command

import (
	"testing"

	"github.com/toolward/toolward"
)

func (w *world) evaluateByShell(t testing.TB, s Policy, command string) *Assessment {
	t.Helper()
	e, _, err := New(s, w.home, NewResolver(w.files))
	if err != nil {
		t.Fatal(err)
	}
	return e.Evaluate(&Request{Command: command, Dir: w.dir, Getenv: w.getenv, Level: toolward.Normal, Places: w, ByShell: true})
}

// The text of these commands is run by a client's own shell: what it may read in another way asks. Our own executor
// runs the words that were judged.
func TestRunBySomebodyElsesShell(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/tar": "x", "/usr/bin/mkdir": "x", "/ws/a.txt": "f", "/ws/src/a.go": "f"})
	for command, want := range map[string]struct{ own, other Outcome }{
		"tar cf x.tar *":             {Run, Person}, // a command in the background may make a name that is an option
		"sleep 2; tar cf x.tar *":    {Run, Person},
		"timeout 5 tar cf x.tar *":   {Run, Person},
		"tar cf x.tar [a-z]*":        {Run, Person},
		"tar cf x.tar ./*":           {Run, Run},
		"tar cf x.tar -- *":          {Run, Run},
		"tar cf x.tar a* src/*":      {Run, Run},
		"tar cf x.tar $PWD/*":        {Run, Run},
		"wc -l *":                    {Run, Person}, // --files0-from=.env
		"wc -l *.txt && grep a *.md": {Run, Run},
		"ls *":                       {Run, Run},
		"touch -- --checkpoint-action=exec=sh; tar cf x.tar *": {Run, Person},
		"echo x > --checkpoint-action=exec=sh; tar cf x.tar *": {Run, Person},
		"touch -- -x | tar cf x.tar *":                         {Run, Person},
		"tar cf x.tar * | tee -- -x":                           {Run, Person},
		"bash -c 'touch -- -x && tar cf x.tar *'":              {Run, Person},
		"touch -- -x && bash -c 'cat *'":                       {Run, Person},
		"go build ./... && ls *":                               {Run, Person},
		"echo . | xargs touch; cat *":                          {Person, Person},
		"ls *.txt | head -n 3 && cat *.txt":                    {Run, Run},
		"cd src && ls *.go":                                    {Run, Run},
		"ls *.txt 2>/dev/null && cat *.txt > /dev/null":        {Run, Run},
		"ls *.txt && touch b.txt":                              {Run, Run},
		"cat $NAME":                                            {Run, Person},
		"echo \"$NAME\"":                                       {Run, Person},
		"echo \"$HOME ${PWD}\"":                                {Run, Run},
		"cat $PWD/a.txt":                                       {Run, Run},
		"bash -c 'cat *.txt' > b.txt":                          {Run, Person},
		"bash -c 'cat *.txt' > /dev/null":                      {Run, Run},
		"ls -d .*":                                             {Run, Person},
		"ls -d ./.git*":                                        {Run, Person},
		"cat =id":                                              {Run, Person},
		"mkdir -p a{1,2} && touch a{1,2}/b":                    {Run, Run},
		"test -v 'x[$(id)]'":                                   {Person, Person},
	} {
		if a := w.evaluate(t, onMiss(Developer), command); a.Outcome != want.own {
			t.Errorf("%s: %s %v, want %s", command, a.Outcome, codes(a), want.own)
		}
		if a := w.evaluateByShell(t, onMiss(Developer), command); a.Outcome != want.other {
			t.Errorf("%s: %s %v by another shell, want %s", command, a.Outcome, codes(a), want.other)
		}
	}
}

// Builtins that evaluate subscripts are nothing that an entry can satisfy, though programs of these names exist.
func TestBuiltinsThatEvaluate(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/read": "x", "/usr/bin/unset": "x", "/usr/bin/wait": "x", "/usr/bin/test": "x", "/usr/bin/[": "x"})
	s := onMiss(Developer, "/usr/bin/*")
	for command, want := range map[string]Outcome{
		"read 'a[$(id)]'": Person, "wait -n": Person, "unset 'a[$(id)]'": Person, "mapfile x": Person,
		"test 'a[$(id)]' -eq 1": Person, "[ 1 -lt 'a[`id`]' ]": Person, "[ -v 'a[$(id)]' ]": Person, "test -v a": Run,
		"printf -v 'a[$(id)]' x": Person, "printf %d 'a[$(id)]'": Person, "printf '%s\\n' 'a[1]'": Run,
		"[ 3 -gt 2 ]": Run, "test -f README.md": Run, "[ a = b ]": Run,
	} {
		if a := w.evaluate(t, s, command); a.Outcome != want {
			t.Errorf("%s: %s %v, want %s", command, a.Outcome, codes(a), want)
		}
	}
}
