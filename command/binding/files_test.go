package binding

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loads is which files of the site a command binds, as paths below its workspace.
func (s *site) loads(c BindableCommand) string {
	s.t.Helper()
	if c.Dir == "" {
		c.Dir = s.at("ws")
	}
	files, _ := loadedFiles(&c, "")
	return s.names(files)
}

func (s *site) names(files []operand) string {
	var got []string
	for _, f := range files {
		name, err := filepath.Rel(s.at("ws"), f.path)
		s.do(err)
		got = append(got, name)
	}
	return strings.Join(got, " ")
}

func TestLoadedFiles(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"a.js", "b.js", "ignore", "z.mk", "data.txt", "prog"} {
		s.write("ws/"+name, name)
	}
	for command, want := range map[string]string{
		"python3 -W ignore run.py":          "ignore run.py",
		"node --import=./a.js b.js":         "a.js b.js",
		"node -r a.js -e 1":                 "a.js",
		"bash -o errexit prog":              "prog",
		"make -f z.mk all":                  "z.mk",
		"make -fz.mk":                       "z.mk",
		"timeout 5 python3.12 run.py":       "run.py",
		"unheard-of --mode x prog data.txt": "prog data.txt",
		"sudo bash prog":                    "prog",
		"cat data.txt":                      "",
		"ls -l prog":                        "",
		"awk {print} data.txt":              "",
		"cp data.txt prog":                  "",
		"xargs ./prog":                      "prog",
		"find . -name x -exec ./prog {} ;":  "prog",
		"python3 missing.py":                "",
		"python3 ../other.py":               "../other.py",
	} {
		if got := s.loads(BindableCommand{Argv: strings.Fields(command)}); got != want {
			t.Errorf("%s binds %q, want %q", command, got, want)
		}
	}
}

// Whatever a program is told to run, load or read as a program is bound, whichever option says so, and also where nobody knows
// what the program does.
func TestWhatProgramsAreToldToObeyIsBound(t *testing.T) {
	s := newSite(t)
	for _, dir := range []string{"sub", "pkg", "deploy", "infra", "com/x"} {
		s.do(os.MkdirAll(s.at("ws/"+dir), 0o755))
	}
	for _, name := range []string{
		"f", "sub/f", "g.js", "k.rb", "pkg/__main__.py", "mod.py", "deploy/a.yaml", "infra/main.tf", "com/x/Main.class", "infra/run.log",
	} {
		s.write("ws/"+name, name)
	}
	for command, want := range map[string]string{
		// Known programs, by options and operands of every kind.
		"yarn tsx f": "f", "npx tsx f": "f", "npx tsx ./f": "f", "psql -f f": "f", "psql -ff": "f", "psql --file=f db": "f", `psql -c \i|f`: "f",
		"sqlite3 db .read|f": "f", "docker compose -f f up": "f", "docker compose --file=f up": "f", "tar --to-command=./f -xf a.tar": "f",
		"tar --checkpoint-action=exec=./f -xf a.tar": "f", "make -f f": "f", "make -C sub -f f": "sub/f f", "ansible-playbook f": "f",
		"ansible-playbook -e @f site.yml": "f", "terraform -chdir=infra apply": "infra/main.tf", "terraform apply -var-file=f": "f",
		"kubectl apply -f f": "f", "kubectl apply -f deploy/": "deploy/a.yaml", "kubectl apply -f deploy": "deploy/a.yaml", "helm install -f f r c": "f",
		"gdb -x f prog": "f", "gdb -ex source|f": "f", "vim -S f": "f", "vim -c source|f": "f", "awk -f f data": "f", "sed -f f data": "f", "jq -f f data": "f",
		"jq --from-file f": "f", "node -r ./g x.js": "g.js", "node --require=./g x.js": "g.js", "ruby -r./k x.rb": "k.rb", "python3 -m pkg": "pkg/__main__.py",
		"python3 -m mod": "mod.py", "php f": "f", "Rscript f": "f", "java -jar f": "f", "java @f": "f", "java -javaagent:f Main": "f", "java -cp a:f Main": "f",
		"java com.x.Main": "com/x/Main.class", "gcc @f": "f", "gcc -fplugin=./f a.c": "f", "xargs -a f ./x": "f", "env -S ./f|-v": "f", "bash --rcfile f -i": "f",
		"ssh -F f h": "f", "ssh -oProxyCommand=./f h": "f", "ssh -o ProxyCommand=./f|%h h": "f", "git -c include.path=f status": "f",
		"git -C sub -c core.hooksPath=. -c include.path=f status": "sub/f f", "cmake -P f": "f", "just -f f": "f", "task -t f": "f", "rsync -e ./f a h:": "f", "nginx -c f": "f",
		"docker run -v ./f:/etc/x img": "f run.py", "patch -i f": "f", "crontab f": "f", "curl -K f": "f", "curl -d @f http://h/": "f", "parallel -a f ./x": "f",
		"su -c ./f": "f", "watch ./f": "f", "time ./f": "f", "tmux -f f": "f", "lua -l f": "f",
		// Programs that nobody knows.
		"./own f": "f", "./own --load=f": "f", "./own -lf": "f", "./own load:f": "f", "./own a,f": "f", "./own pkg.cfg=@f": "f", "./own file://f": "f",
		"./own -C sub f": "f sub/f", "./own eval|load('f')": "f",
	} {
		argv := strings.Fields(command)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "|", " ") // a space within a word
		}
		got := strings.Fields(s.loads(BindableCommand{Argv: argv}))
		slices.Sort(got)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s binds %q, want %q", command, got, wanted)
		}
	}
}

// What a program gets as its input, and what tools find in their directory, is bound as well.
func TestInputsAndUnnamedFilesAreBound(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"a.sql", "package.json", "Makefile", "docker-compose.dev.yml", "notes.txt"} {
		s.write("ws/"+name, name)
	}
	const obeyed = "Makefile docker-compose.dev.yml package.json"
	for _, c := range []struct {
		name    string
		command BindableCommand
		want    string
	}{
		{"redirected", BindableCommand{Argv: []string{"psql", "db"}, Inputs: []string{s.at("ws/a.sql")}}, "a.sql"},
		{"piped", BindableCommand{Argv: []string{"psql", "db"}, Fed: [][]string{{"cat", "a.sql"}}}, "a.sql"},
		{"piped as data", BindableCommand{Argv: []string{"wc"}, Fed: [][]string{{"cat", "a.sql"}}}, ""},
		{"elsewhere after a cd", BindableCommand{Argv: []string{"psql", "-f", "a.sql"}, Dir: s.at("bin"), OtherDirs: []string{s.at("ws")}}, "a.sql"},
		{"make", BindableCommand{Argv: []string{"make", "all"}}, obeyed},
		{"npm", BindableCommand{Argv: []string{"npm", "test"}}, obeyed},
	} {
		if got := s.loads(c.command); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// A name that promises to read may lead to a shell.
	files, _ := loadedFiles(&BindableCommand{Argv: []string{"cat", "a.sql"}, Dir: s.at("ws")}, "/usr/bin/bash")
	if got := s.names(files); got != "a.sql" {
		t.Errorf("behind a link: %q", got)
	}
}

// Where only a shell understands the text, every file that it names is bound.
func TestFilesOfATextAreBound(t *testing.T) {
	s := newSite(t)
	s.do(os.Mkdir(s.at("ws/sub"), 0o755))
	s.write("ws/sub/a.sql", "select 1")
	for _, text := range []string{
		"for i in 1 2; do python3 run.py $i; done", "if true; then . ./run.py; fi", "X=$(python3 run.py)", "python3 <(cat run.py)", "while read x; do :; done <run.py",
		"cd sub && psql -f a.sql $(date)",
	} {
		bind := func() (*Binding, error) { return s.binder.Bind(Bindable{Text: text, Dir: s.at("ws")}) }
		approved, err := bind()
		s.do(err)
		if now, err := bind(); err != nil || approved.Check(now) != nil {
			t.Errorf("%s: nothing changed, and it is refused", text)
		}
		s.write("ws/run.py", "print(3)"+text)
		s.write("ws/sub/a.sql", "drop table a"+text)
		if now, err := bind(); err != nil || approved.Check(now) == nil {
			t.Errorf("%s: a file was exchanged, and it passes", text)
		}
	}
}

// What cannot be held is said.
func TestWhatIsNotHeldIsSaid(t *testing.T) {
	s := newSite(t)
	s.do(os.MkdirAll(s.at("ws/deep/er"), 0o755))
	for command, want := range map[string]string{
		"npm test":                              "the project's code",
		"unheard-of .":                          "what lies in " + s.at("ws"),
		"unheard-of deep":                       "all that lies in " + s.at("ws/deep"),
		"unheard-of /proc/self/status":          "what /proc/self/status says",
		"find . -name *.sql -exec psql -f {} ;": "files whose names it gets when it runs",
		"xargs psql -f":                         "files whose names it gets when it runs",
		"cat run.py":                            "",
		"python3 run.py":                        "the project's code",
	} {
		bound, err := s.binder.Bind(Bindable{Dir: s.at("ws"), Commands: []BindableCommand{{Argv: strings.Fields(command)}}})
		s.do(err)
		if got := strings.Join(bound.Left(), "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q is left, want %q", command, got, want)
		}
	}
	for _, c := range []struct{ text, want string }{{"for f in *.sql; do psql -f $f; done", "files that a pattern matches"}} {
		if _, left := namedFiles(c.text, s.at("ws")); !slices.Contains(left, c.want) {
			t.Errorf("%s: %q is left, want %q", c.text, left, c.want)
		}
	}
	_, left := loadedFiles(&BindableCommand{Argv: slices.Repeat([]string{"x"}, 2*mostLooks), Dir: s.at("ws")}, "")
	if !slices.Contains(left, "names beyond those that are looked up") {
		t.Errorf("more words than are looked at: %q", left)
	}
}
