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
	for command, want := range map[string]struct{ own, other toolward.Verdict }{
		"tar cf x.tar *":             {toolward.Allow, toolward.Ask}, // a command in the background may make a name that is an option
		"sleep 2; tar cf x.tar *":    {toolward.Allow, toolward.Ask},
		"timeout 5 tar cf x.tar *":   {toolward.Allow, toolward.Ask},
		"tar cf x.tar [a-z]*":        {toolward.Allow, toolward.Ask},
		"tar cf x.tar ./*":           {toolward.Allow, toolward.Allow},
		"tar cf x.tar -- *":          {toolward.Allow, toolward.Allow},
		"tar cf x.tar a* src/*":      {toolward.Allow, toolward.Allow},
		"tar cf x.tar $PWD/*":        {toolward.Allow, toolward.Allow},
		"wc -l *":                    {toolward.Allow, toolward.Ask}, // --files0-from=.env
		"wc -l *.txt && grep a *.md": {toolward.Allow, toolward.Allow},
		"ls *":                       {toolward.Allow, toolward.Allow},
		"touch -- --checkpoint-action=exec=sh; tar cf x.tar *": {toolward.Allow, toolward.Ask},
		"echo x > --checkpoint-action=exec=sh; tar cf x.tar *": {toolward.Allow, toolward.Ask},
		"touch -- -x | cat *":                           {toolward.Allow, toolward.Ask},
		"ls * | tee -- -x":                              {toolward.Allow, toolward.Ask},
		"bash -c 'touch -- -x && tar cf x.tar *'":       {toolward.Allow, toolward.Ask},
		"touch -- -x && bash -c 'cat *'":                {toolward.Allow, toolward.Ask},
		"go build ./... && ls *":                        {toolward.Allow, toolward.Ask},
		"echo . | xargs touch; cat *":                   {toolward.Ask, toolward.Ask},
		"ls *.txt | head -n 3 && cat *.txt":             {toolward.Allow, toolward.Allow},
		"cd src && ls *.go":                             {toolward.Allow, toolward.Allow},
		"ls *.txt 2>/dev/null && cat *.txt > /dev/null": {toolward.Allow, toolward.Allow},
		"ls *.txt && touch b.txt":                       {toolward.Allow, toolward.Allow},
		"cat $NAME":                                     {toolward.Allow, toolward.Ask},
		"echo \"$NAME\"":                                {toolward.Allow, toolward.Ask},
		"echo \"$HOME ${PWD}\"":                         {toolward.Allow, toolward.Allow},
		"cat $PWD/a.txt":                                {toolward.Allow, toolward.Allow},
		"bash -c 'cat *.txt' > b.txt":                   {toolward.Allow, toolward.Ask},
		"bash -c 'cat *.txt' > /dev/null":               {toolward.Allow, toolward.Allow},
		"ls -d .*":                                      {toolward.Allow, toolward.Ask},
		"ls -d ./.git*":                                 {toolward.Allow, toolward.Ask},
		"cat =id":                                       {toolward.Allow, toolward.Ask},
		"mkdir -p a{1,2} && touch a{1,2}/b":             {toolward.Allow, toolward.Ask}, // one word for dash
		"test -v 'x[$(id)]'":                            {toolward.Ask, toolward.Ask},
		"cat \"$PWD:h/a\"":                              {toolward.Allow, toolward.Ask}, // the directory above, for zsh
		"cat $PWD:s,ws,x,":                              {toolward.Allow, toolward.Ask},
		"cat ${PWD}:h":                                  {toolward.Allow, toolward.Allow},
		"echo \"$HOME[1]\"":                             {toolward.Allow, toolward.Ask},
		"cat ./**/a.t?t":                                {toolward.Allow, toolward.Ask},
		"grep -n '**' a.txt":                            {toolward.Allow, toolward.Allow},
		"cat ''~/notes":                                 {toolward.Ask, toolward.Ask}, // at home, for zsh
		"cat \"\"\"\"~/notes":                           {toolward.Ask, toolward.Ask},
		"cat ''=id":                                     {toolward.Allow, toolward.Ask},
		"cat {''~/notes,a.txt}":                         {toolward.Ask, toolward.Ask},
		"cat {\"\"=id,a.txt}":                           {toolward.Allow, toolward.Ask},
		"cat ''a.txt":                                   {toolward.Allow, toolward.Allow},
		"cat '='a.txt":                                  {toolward.Allow, toolward.Allow},
		"echo x > ''~/.bashrc":                          {toolward.Ask, toolward.Ask},
		"cat < \"\"=id":                                 {toolward.Ask, toolward.Ask},
		"cd =id && cat a.go":                            {toolward.Allow, toolward.Ask},
		"cd $\u672c && cat a.txt":                       {toolward.Allow, toolward.Ask}, // at home, for zsh
		"echo x >! a.txt":                               {toolward.Ask, toolward.Ask},   // a.txt, for zsh
		"echo x >>!a":                                   {toolward.Ask, toolward.Ask},
		"echo x &>! a.txt":                              {toolward.Ask, toolward.Ask},
		"echo x > '!'":                                  {toolward.Allow, toolward.Allow},
		"LANG='path[$(id)]' printf %d LANG":             {toolward.Allow, toolward.Ask},
		"LC_ALL='a(1)' ls":                              {toolward.Allow, toolward.Ask},
		"LC_ALL=C.UTF-8 ls":                             {toolward.Allow, toolward.Allow},
		"ls | cd src && cat a.go":                       {toolward.Allow, toolward.Ask}, // in src, for zsh
		"cat {a.txt,=id}":                               {toolward.Allow, toolward.Ask},
		"echo {,a} b":                                   {toolward.Allow, toolward.Ask},
		"cat a{,.b}":                                    {toolward.Allow, toolward.Ask},
		"ls &> a.txt":                                   {toolward.Allow, toolward.Ask}, // ls in the background, for dash
		"cat \\x2eenv":                                  {toolward.Allow, toolward.Ask}, // .env, for fish
		"cat 'a\\' a.txt":                               {toolward.Allow, toolward.Ask}, // "' a.txt" is in the word, for fish
		"grep 'a\\.b' a.txt":                            {toolward.Allow, toolward.Allow},
		"grep \"$^a\" a.txt":                            {toolward.Allow, toolward.Ask}, // a parameter, for zsh
		"grep -E \"a$|b$\" a.txt":                       {toolward.Allow, toolward.Allow},
		"cat $HOME\u00e9":                               {toolward.Allow, toolward.Ask},
		"bash -c \"echo $^a\"":                          {toolward.Allow, toolward.Ask},
		"cat ~'/a'":                                     {toolward.Ask, toolward.Ask},
		"cat <->a.txt":                                  {toolward.Ask, toolward.Ask},
		"cat 2&>a":                                      {toolward.Ask, toolward.Ask},
		"1=2 cat a.txt":                                 {toolward.Ask, toolward.Ask},
		"\\noglob cat a.txt":                            {toolward.Ask, toolward.Ask},
		"cat {fd} <a.txt":                               {toolward.Ask, toolward.Ask},
	} {
		if a := w.evaluate(t, onMiss(Developer), command); verdict(a) != want.own {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want.own)
		}
		if a := w.evaluateByShell(t, onMiss(Developer), command); verdict(a) != want.other {
			t.Errorf("%s: %s %v by another shell, want %s", command, verdict(a), codes(a), want.other)
		}
	}
}

// Builtins that evaluate subscripts are nothing that an entry can satisfy, though programs of these names exist.
func TestBuiltinsThatEvaluate(t *testing.T) {
	w := newWorld(t, map[string]string{"/usr/bin/read": "x", "/usr/bin/unset": "x", "/usr/bin/wait": "x", "/usr/bin/test": "x", "/usr/bin/[": "x"})
	s := onMiss(Developer, "/usr/bin/*")
	for command, want := range map[string]toolward.Verdict{
		"read 'a[$(id)]'": toolward.Ask, "wait -n": toolward.Ask, "unset 'a[$(id)]'": toolward.Ask, "mapfile x": toolward.Ask,
		"test 'a[$(id)]' -eq 1": toolward.Ask, "[ 1 -lt 'a[`id`]' ]": toolward.Ask, "[ -v 'a[$(id)]' ]": toolward.Ask, "test -v a": toolward.Allow,
		"printf -v 'a[$(id)]' x": toolward.Ask, "printf %d 'a[$(id)]'": toolward.Ask, "printf '%s\\n' 'a[1]'": toolward.Allow,
		"[ 3 -gt 2 ]": toolward.Allow, "test -f README.md": toolward.Allow, "[ a = b ]": toolward.Allow,
	} {
		if a := w.evaluate(t, s, command); verdict(a) != want {
			t.Errorf("%s: %s %v, want %s", command, verdict(a), codes(a), want)
		}
	}
}
