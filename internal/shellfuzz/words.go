package shellfuzz

import "slices"

// What commands are made of. Of every list, what analysis accepts by itself is used more often.
var (
	programs = newList("@ x", []string{
		"ls", "cat", "grep", "go", "make", "rm", "cp", "mv", "false", "echo", "printf", "true", "p", "q", "r", "s", "t", "./run.sh", "sub/tool",
		"/usr/bin/id", "/bin/p", "../x", "~/x", "'ls'", `"cat"`, `l\s`, `g"re"p`, "[", "test", ":", "pwd", "git", "npm", "python3", "sed", "'p q'", `p\ q`,
		"./sub/../run.sh", "sub//tool", "p.q", "p-q", "p+", "@p", "p,q", "p:q", "p%", "tee", "head", "sort", "docker", "cargo",
	})
	directories = newList("@", []string{
		"cd sub", "cd link", "cd ..", "cd nowhere", "cd empty", "cd .", "cd ./sub", "cd sub/deep", "cd link/deep", "cd /w", "cd /", "cd 'dir with space'",
		"cd a.go", "cd sub/..", "cd link/..", "cd sub/", "cd //w", "cd dangling", "cd é", "cd", "cd -", "cd ~", "cd --", "cd -- sub", "cd -P link", "cd sub sub",
		"cd $X", "cd s*b", "cd ''", "cd sub >new", "cd sub 2>/dev/null", "CI=1 cd sub", "pushd sub", `c"d" sub`, `\cd sub`, "cd {sub,x}", "cd ~/", "cd ...", "cd sub/deep/../..",
	})
	oddPrograms = newList("@ x", []string{
		"if", "then", "fi", "for", "while", "do", "done", "case", "esac", "in", "function", "select", "time", "!", "{", "}", "[[", "]]", "coproc",
		"eval", "exec", "source", ".", "command", "builtin", "export", "declare", "local", "readonly", "unset", "set", "let", "read X", "trap", "alias",
		"", "''", `""`, "$PLAIN", "$EMPTY", "{ls,-l}", "l*", "=", "a=b", "'a=b'", `a\=b`, "1", "-", "--", "*", "?", "~", "~root/x", "#", `\#`, "!ls", "^a^b", "%1",
		"é", "\u00a0", "ls\u00a0", "日本", "a+=b", "a[1]=b", "a[$(id)]=1", "1=2", "&", "<(ls)", "$'ls'", "((1))", "mapfile", "printf -v X", "test -v", "exit", "return",
		"wait", "kill", "type", "hash", "umask", "unalias", "pushd", "getopts", "compgen", "shift", "if=x", "do=1", "time -p", "nohup", "env", "sudo", "busybox",
	})
	wrappers = newList("@ p", []string{
		"env", "env --", "nice", "nice -n 5", "nice -5", "nice -n5", "nice --adjustment=3", "nice -n -1", "nohup", "nohup --", "stdbuf -oL", "stdbuf -o L -e0",
		"timeout 5", "timeout -k 1 5s", "timeout --foreground 1m", "timeout .5", "timeout -s KILL 3", "env A=b", "env -i", "nice -n", "timeout", "xargs", "xargs -n 1", "xargs -I{}", "xargs -0",
		"timeout 5.", "timeout 1d", "nice -n +3", "nice --5", "nice -+5", "stdbuf -o", "timeout -v 2", "timeout -- 3", "nice --", "timeout -p 4", "nice -n 3 -n 4", "stdbuf --output=L", "/usr/bin/env", "env env", "ENV", "xargs -r",
		"nohup nice", "nice timeout 5", "timeout 5 nohup", "stdbuf -i0 -o0 -e0", "stdbuf -eL", "stdbuf -o1K", "timeout -k 5 3", "timeout --preserve-status 2", "timeout 0",
		"timeout 0.5", "timeout 1.5h", "timeout -s9 3", "timeout --signal=TERM 3", "timeout -v --foreground 3", "nice -0", "nice -19", "nice -n '5'", `nice -n "5"`,
		"nice env timeout 3 nohup", "env nohup nice timeout 3 stdbuf -oL", "/bin/nice", "/usr/bin/timeout 3", "nice --adjustment 3", "nohup -- nice --",
		"timeout -k 1 -s INT 3", "timeout 3 env --", "setsid", "sudo -u x", "env -S", "env -u X", "env -", "timeout -k", "nice -n 3 --", "time", "exec", "command", "builtin",
	})
	// carriers start what stands in their arguments, again and again or once.
	carriers = newList("@ x", []string{
		"xargs p", "xargs -n 1 p", "xargs -n2 grep -n", "xargs -0 p", "xargs -I{} p {} x", "xargs -I % p % %", "xargs -r p", "xargs -t p", "xargs -d , p", "xargs -P 2 -n 1 p",
		"xargs -L 1 p", "xargs -a x p", "xargs nice p", "xargs timeout 5 p", "xargs env p", "xargs nohup stdbuf -oL p", "xargs -s 200 p", "xargs -x p", "xargs --max-args=1 p",
		"xargs sh -c 'p q'", "xargs -I{} sh -c 'p {}'", "xargs -i p {}", "xargs -E x p", "xargs", "xargs -p p", "xargs --no-run-if-empty p", "xargs -I{} {} p", "xargs -n 1 -- p",
		"find sub -name '*.go' -exec p {} ';' -o -name", `find sub -type f -exec p {} \; -name`, "find . -maxdepth 1 -name 'a*' -exec p -l {} + -o -name", "find sub -exec nice p {} ';' -o -name",
		"find sub -print0 -name", "find . -maxdepth 1 -execdir p {} ';' -o -name", "find empty sub.d -exec p q ';' -o -name", "find sub -exec p {} ';' -exec q {} ';' -name",
		"find -L link -exec p {} + -o -name", "find sub -name c.go -exec p {} {} ';' -o -name", "find sub -ok p {} ';' -o -name", "find sub -exec sh -c 'p' ';' -o -name",
		"find sub -delete -o -name", "find sub -fprint new -o -name", "find sub -exec timeout 5 env p {} + -o -name", "find nowhere -exec p {} + -o -name", "find sub -exec p {}x ';' -name",
		"find sub -quit -exec p {} ';' -name", "find sub ! -name x -exec p a{}b ';' -o -name", "find sub -exec p {} + -exec q {} + -o -name",
		"git bisect run p", "git bisect run nice p", "uv run p", "bundle exec p", "poetry run p", "pipenv run p", "pnpm exec p", "rustup run stable p", "uv run -- p",
		"git -c alias.a=!p a", "git -c 'alias.a=!p q' a", "git submodule foreach p", "git status", "git log", "git -C sub status", "uv run --with x p", "bundle exec nice timeout 5 p",
	})
	shellStarts = newList("@ x", []string{
		"bash -c", "bash -c", "bash -c", "bash -c", "bash -ec", "bash -c", "bash -c",
		"bash -c", "bash -c", "sh -c", "bash -lc", "sh -ec", "bash -x -c", "bash -c --", "dash -c", "/bin/sh -c", "bash +x -c", "bash -euc", "bash -e -c", "bash -eu -c", "sh -u -c",
		"bash -xv -c", "bash -cl", "/usr/bin/bash -c", "bash -ce", "sh -c -e", "bash --norc -c", "bash -o pipefail -c", "bash -ic", "bash -s", "nice bash -c", "timeout 5 sh -c",
		"env bash -c", "stdbuf -oL bash -ec", "nohup dash -c", "bash -euxc", "bash -exc", "sh -xc", "zsh -c", "xargs bash -c", "bash -c -", "'bash' -c", `ba\sh -c`, `bash "-c"`,
	})
	assignments = newList("@ p", combined([]string{
		"LANG", "LC_ALL", "TZ", "CI", "NO_COLOR", "TERM", "PATH", "X", "LD_PRELOAD", "IFS", "LC_X", "LINES", "COLUMNS", "LC_ALL+", "TZ[0]", `"CI"`, `C\I`, "LC_", "LC_é", "GOOS", "NODE_ENV",
	}, []string{
		"=", "=C", "=1", "='a b'", `="x"`, "=~", "=~/x", "=a:~", "=$PLAIN", "=*", "={a,b}", "=(a b)", `=a\ b`, "=$(id)", "=a=b", "=#", "=a#b", "='", "=[x]", "=C.UTF-8",
		`="$X"`, "=''", "='$X'", `="a'b"`, "=é", "='a\nb'", "=a,b", "=-", "=%", "=a CI=2", "=a LANG=",
	}))
	redirectOperators = newList("p @x", []string{
		">", ">", ">>", "2>", "<", "<", "&>", ">|", "&>>", "1>", "2>>", "0<",
		"<>", ">&", "<&", "3>", "{fd}>", "<<<", "2>&", "0>", "1<", "2<", "10>", "01>", "02>", "2&>", "1&>>", "&>|", "-1>", "é2>", `\2>`, "'2'>", "{X}<", "9<", "1>|", "2>|", "0>>", ">>|", "a2>", "2 >",
	})
	streamRedirections = newList("p @", []string{
		"2>&1", ">&2", "1>&2", ">/dev/null", "2>/dev/null", "&>/dev/null", "</dev/null", "2>&-", ">&-", "<&-", "2>&1-", ">&1", "2>&2", "1>&1", "0>&1", "2>&01", ">&'2'", ">& 2", "2>&\"1\"", "2>& 1", ">&2x", "2>&$X", "&>/dev/nul", ">/dev/stdout", ">/dev/tcp/h/1",
		">/dev/null 2>&1", "2>&1 >/dev/null", "</dev/null", "2>/dev/null", ">/dev/full", "</dev/zero", "2>&1 1>&2", ">&2 2>&1",
	})
	redirectTargets = newList("p >@", []string{
		"out.txt", "new", "sub/new", "a.go", "x", "nowhere/f", "'with space'", `"new 2"`, `a\b`, `a\*b`, "$PLAIN", "*", "~/new", "{a,b}", "empty", "/w/new", "1", "2", "é", "''", "-", "--", "&1", "(", "$(id)", "<(id)", "=", "[x]", "[xy]", "~", "a~", "new#x", "#", "!h", "\\~", "link/new", "dangling", "../w/n", "./-d/n",
		"new", "new1", "new2", "sub/new", "'new 3'", `new"4"`, "./new", "sub/../new", "sub/c.go", "link/new", "'sub/new 5'", "empty/new", "sub.d", "a.go/x", "/tmp/new", "/home/u/new", "new.é", "'new$X'", `new\$X`, `"new;x"`, "new,x", "new:x", "new=x", "'*'", "'~'", "new~", "run.sh",
	})
	delimiters = &list{tame: []string{"E", "EOF", "'E'", `"E"`, "E-", "E_1", "'E.x'", "!", "'EOF'", "END"}, all: []string{
		"E", "EOF", "E", "'E'", `"E"`, `\E`, `E"F"`, "'E F'", "E-", "é", "$X", "'$X'", `"E$"`, "E\\ F", "-", "''", "{a,b}", "*", "~", "E;", "`E`", "'E'F", "E#", "=E", "!", "E_1", "'E.x'", "E", "EOF", "'EOF'",
	}}
	bodies = newList("p <<Z\n@\nZ", []string{
		"hi", "$PLAIN", "${X}y", "a 'b", `"`, `\$X`, `a\\b`, "\\`", "$(id)", "`id`", "$((1))", "${X:-y}", "E", "EOF ", " E", "E;", "\tE", "$", "$1", "$'x'", "*", "~", "é", `\a`, "{a,b}", `a\`, "$IFS", "$SPACED", "\\E", "$NL", "<<E", "#", "$PWD", "$_", `\\$X`, `\\\$X`, "$X$", "$-", "${X", "$[1]", "$\"x\"", "a\tb", "$PLAIN\tx", "$EMPTY\ty",
		"$SPACED$PLAIN", "\"$X\"", "'$X'", "a\\", "\\\\", "${PLAIN}$X", "x${EMPTY}y", "$UNSET.", "a;b|c&d>e<f", "(x)", "é$X", "\\\"", "EOF", "E F", "#!/bin/sh",
	})
	endings      = newList("p@", []string{";", " ;", " # comment 'x", "#x", " &", "\n", " \\", "\t", " |", " #\\", " ;;", "  ", " #", ";#", " # $(id)", " ;\n", "\n\n", " # a;b", "&", ";;", " &&"})
	oddOperators = []string{"|&", "&", "\n", "&&!", "|||", ";;", "&|", "&;", "||&", "\n&&", "&&\n", "|\n", ";\n", "\r\n", "; !", "\v", " "}
	compounds    = []string{
		"(@)", "{ @; }", "if @; then @; fi", "for i in a b; do @; done", "while @; do break; done", "! @", "time @", "f() { @; }", "[[ -n x ]] && @",
		"((1)) || @", "case x in x) @;; esac", "coproc @", "$(@)", "`@`", "function f { @; }", "until @; do break; done", "{ @;} >new", "(@)>new", "x=$(@)", "{@}", "}@", "!@", "! ! @", "time -p @", "@ &",
	}
	atoms = newList("p @", []string{
		"a", "b", "-l", "--all", "file", "x.go", "*.go", "*", "?.go", "[ab].go", "[!a].go", "[^a].go", "[a-b]*", "[", "]", "[]", "[a", "a]", ".*", "sub/*", "*/*", "**", "**/*.go", "*/", "./*", "../w/*",
		"{a,b}", "{a,b}.go", "{1..3}", "{3..1}", "{a..c}", "{a}", "{}", "{,}", "{a,b", "a,b}", "{a,{b,c}}", "{1..9..3}", "{a..Z}", "{01..3}", "{-1..1}", "x{,y}", "{*.go,x}", "{a\\,b}", "{'a',b}", "{a,\"b c\"}", "${X}{a,b}", "{1..}", "{..}", "{a..bb}", "{a,b}{c,d}", "{$X,b}",
		"~", "~/x", "~root", "~+", "~-", "a~", "~/*.txt", "--o=~/x", "a=~/x", "a=~", "x:~", "a=b:~/c", "~'/x'", "~/\"x\"", "~\\/x", "'~'", "~/$X", "{~,a}", "{~/x,y}", "\\~", "~0", "a=~:~", "=~", "~/", "~//x", "[~]",
		"$PLAIN", "${PLAIN}", "\"$PLAIN\"", "$EMPTY", "\"$EMPTY\"", "$UNSET", "\"$SPACED\"", "$SPACED", "$STAR", "\"$STAR\"", "$TILDE", "$QUOTE", "\"$QUOTE\"", "$DASH", "$BACK", "\"$BACK\"", "$BRACE", "$NL", "\"$NL\"", "$DOLLAR", "$X", "a$X", "$X.go", "${X}1", "$Xa", "$X/$X",
		"$IFS", "a$IFS", "$PWD", "$OLDPWD", "$HOME", "$PATH", "$_", "$UID", "$EUID", "$RANDOM", "$SECONDS", "$PPID", "$BASH_VERSION", "$HOSTNAME", "$SHLVL", "$LINENO", "$OPTIND", "$PS4", "$BASHPID", "$BASH", "$OSTYPE", "$GROUPS", "$DIRSTACK", "$SHELLOPTS", "$BASHOPTS", "$PIPESTATUS", "$BASH_COMMAND", "$TERM", "$MACHTYPE", "$HOSTTYPE", "$EPOCHSECONDS", "$SRANDOM", "$FUNCNAME", "$REPLY", "$BASH_SUBSHELL", "$COLUMNS", "$LINES", "$SHELL", "$OPTERR", "$PS1", "$HISTCMD",
		"$", "a$", "$?", "$$", "$!", "$#", "$@", "$*", "$-", "$0", "$1", "${", "${X", "${X:-a}", "${#X}", "${!X}", "${X%a}", "${X/a/b}", "${X@P}", "${X[0]}", "$[1+1]", "$((1+1))", "$(id)", "`id`", "<(id)", ">(id)", "$'a\\nb'", "$\"a\"", "$''", "\"$\"", "\"$ \"", "'$X'", "$%", "$,", "\"a$\"", "$/", "$.go", "$=", "\"$'a'\"", "${ id; }", "${| id; }",
		"''", `""`, "'a b'", `"a b"`, `a\ b`, `\*`, `'*'`, `"*"`, `\`, `\\`, `\a`, `"\a"`, `"\$X"`, `"\\"`, "'\\'", `'it'\''s'`, `"it's"`, `"a\"b"`, "'a\nb'", "\"a\nb\"", `a"b"'c'`, `\'`, `\"`, "\"`\"", "\"\\`\"", `\$X`, `"!x"`, `'a`, `"a`, `\{a,b}`, `{a\,b}`, `"{a,b}"`, `[\]a]*`, `["ab"].go`, `[a'b'].go`, `\[ab].go`, `*\*`, `a\*b`, `"a"*`, `*"."go`, `'a'*'.go'`, `\?`, `["x"]`, `[\x]`,
		"#", "a#b", "#c", "\\#c", "!", "!x", "!!", "!$", "a!", "^a^b", "=", "a=b", "a=", "=a", "a=b=c", "A+=b", "a[0]=b", "-", "--", "-c", "-e", "if", "then", "do", "in", "time", "{", "}", "esac", "!", "[[", "]]", "function", "@", "%", "+", ",", ":", ".", "..", "/", "//", "&", "(", ")", ";", "|", "<", ">",
		"é", "é*", "日本", "?.txt", "\u00a0", "a\u00a0b", "“a”", "\u2003", "\u3000", "À", "ﬀ", "\u0301", "🙂", "[é].txt", "[à-ü].txt", "?[.]txt",
		"@(a|b)", "!(a)", "?(a)", "*(a)", "+(a)", "a@(b)", "*.@(go)", "[[:alpha:]].go", "[[:space:]]", "[[.a.]]*", "[[=a=]]*", "[a-", "[z-a]", "[]a]*", "[!]]*", "[[]x]", "[a/b]", "sub/[c]*", "[-a]*", "[a\\]b]*", "*[!o]", ".[!.]*", "[!.]*", "[.]*", "[^.]*", "*\\*b", "link/*", "*/e.go", "sub/deep/../*", "with*", "a?b", "\\[x\\]", "[[x]]", "*'", "-*", "./-*", "*\\", "[a-b]\\.go", "{a,b}*", "*{go,txt}", "[{a,b}].go", "{[ab],x}.go",
		"sub/*.go", "./*.go", "sub/*.*", "[A-Z]*", "?.go", "link/*.go", "*.md", "sub/deep/*", "src/*", "*.txt", "sub/?.go", "*/*.go", "s*/c.go", "sub/*/e.go", "B*", "*~", "*'*'*", `*"o"`,
		"{a,b}.go", "{a..c}.go", "sub/{c.go,d.txt}", "{1..10..2}", "{c..a}", "x{1,2}{a,b}", "{a,b,}", "{,a}", "{a.go,*.md}", `{"a b",c}`, "{a,b}{1..2}x", "{10..8}", "a{b}c", "a{}b", "{a,b}$X", "pre{a,b}post",
		`"$PLAIN/$X"`, `"${X}y$Z"`, `'"'`, `"'"`, `"a b"c'd e'`, `\ `, `a\;b`, `\|`, `\&`, `\(`, `\<`, `\#x`, `\~/x`, `\-`, `"#"`, `'#'x`, `""''`, `x''y`, `"\\\""`, `'a'"b"'c'`, `a\'b`, `"$X"'$X'\$X`,
		"a=$X:~", `a="b":~/x`, "A+=~", "a[0]=~", "a=$X~", "k=v:~/x:~", "//$Z*", "$Z/*", `*/"*"`, "{,}*", "*/{,}c.go", `[a*`, `[*"]"`, "*/x", "$PWD", "$PWD/*.go", `"$PWD"`,
		"--color=auto", "-n1", "--x=y", "+x", "@x", "a/b/c", "http://h/p?q=1", "a@b:c", "50%", "k=v,k2=v2", "x:y:z", "HEAD~1", "HEAD^", "a..b", "stash@{0}", "-", "s/a/b/", "1,20p", "'{print $1}'", "'.a[] | .b'", "*.[ch]",
	})
	characters = []string{
		"a", "b", "X", "1", " ", "  ", "\t", "\n", "$", "$X", "*", "?", "[", "]", "{", "}", ",", "~", "/", "#", "!", "&", "|", ";", "<", ">", "(", ")", "'", "\"", "\\", "`", "=", ":", "%", "^", "@", "+", "-", ".", "é", "日", "\u00a0", "$(id)", "&&", "||", ">>", "<<E", "..",
	}
)

// combined is every beginning with every end.
func combined(beginnings, ends []string) []string {
	var all []string
	for _, b := range beginnings {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return slices.Clip(all)
}
