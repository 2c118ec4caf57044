package execpolicy

import "strings"

// hostile are command lines that cost the most for their length.
var hostile = map[string]func(n int) string{
	"words":       func(n int) string { return "cat" + strings.Repeat(" a", n/2) },
	"segments":    func(n int) string { return strings.Repeat("ls;", n/3) + "ls" },
	"quotes":      func(n int) string { return "echo " + strings.Repeat(`"a"'b'`, n/6) },
	"parameters":  func(n int) string { return "echo " + strings.Repeat("$A", n/2) },
	"braces":      func(n int) string { return "echo " + strings.Repeat("{a,b}", n/5) },
	"globs":       func(n int) string { return "echo " + strings.Repeat("*", n) },
	"options":     func(n int) string { return "grep" + strings.Repeat(" -e x", n/5) },
	"paths":       func(n int) string { return "cat" + strings.Repeat(" ../a/b", n/7) },
	"redirects":   func(n int) string { return "cat" + strings.Repeat(" >a", n/3) },
	"decoders":    func(n int) string { return "echo" + strings.Repeat(" base64 -d printf x", n/19) + " | cat" },
	"interpreter": func(n int) string { return strings.Repeat("python3 -c eval base64 ", n/23) },
	"pipes":       func(n int) string { return strings.Repeat("curl x |sh ", n/11) + "x" },
	"variables":   func(n int) string { return strings.Repeat("a=b;", n/4) + "$c" },
	"brackets":    func(n int) string { return "echo " + strings.Repeat("(", n) },
	"shells":      func(n int) string { return "bash -c 'bash -c \"" + strings.Repeat("ls;", n/3) + "ls\"'" },
	"find":        func(n int) string { return "find ." + strings.Repeat(" -exec grep x {} +", n/18) },
	"escapes":     func(n int) string { return "echo $'" + strings.Repeat(`\x4`, n/3) },

	"roots":       func(n int) string { return "find" + strings.Repeat(" a", n/2) + " -delete" },
	"tests":       func(n int) string { return "find ." + strings.Repeat(" -newer a", n/9) },
	"fileOptions": func(n int) string { return "grep" + strings.Repeat(" -f a", n/5) },
	"deepPaths":   func(n int) string { return "cat" + strings.Repeat(" "+strings.Repeat("a/", 64), n/129) },
	"parents":     func(n int) string { return "cat " + strings.Repeat("../", n/3) },
	"globWords":   func(n int) string { return "cat" + strings.Repeat(" *", n/2) },
	"globDirs":    func(n int) string { return "cat " + strings.Repeat("*/", n/2) },
	"globUp":      func(n int) string { return "cat " + strings.Repeat("*/../", n/5) },
	"braceList":   func(n int) string { return "echo {" + strings.Repeat("a,", n/2) + "a}" },
	"braceNested": func(n int) string { return "echo " + strings.Repeat("{a,", n/4) + strings.Repeat("}", n/4) },
	"braceRange":  func(n int) string { return "echo" + strings.Repeat(" {1..999999}", n/12) },
	"dollarQuote": func(n int) string { return "echo " + strings.Repeat(`"$A"`, n/4) },
	"nested":      func(n int) string { return "echo " + strings.Repeat(`"$(`, n/6) + strings.Repeat(`)"`, n/6) },
	"heredoc":     func(n int) string { return "cat <<'E'\n" + strings.Repeat("a\n", n/2) + "E" },
	"heredocs": func(n int) string {
		return "cat" + strings.Repeat(" <<E", n/8) + "\n" + strings.Repeat("E\n", n/8)
	},
	"oneLine":    func(n int) string { return "cat <<'E'\n" + strings.Repeat("a", n) + "\nE" },
	"duplicates": func(n int) string { return "cat" + strings.Repeat(" 2>&1", n/5) },
	"segmentsOf": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("find . -exec sed "+strings.Repeat("x", max(1, n/256-22))+" {} +|", min(n/23, 255)), "|")
	},
	"seds": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("sed '"+strings.Repeat("w a;", max(1, n/1024-2))+"' b|", 250), "|")
	},
	"awks": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("awk '{"+strings.Repeat("x=1;", max(1, n/1024-3))+"}' b|", 250), "|")
	},
	"changes": func(n int) string { return strings.Repeat("cd a||", min(n/6, 250)) + "ls" },
	"operands": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("cat"+strings.Repeat(" a", max(1, n/512-2))+"|", 250), "|")
	},
	"sed":        func(n int) string { return "sed '" + strings.Repeat("p;", n/2) + "' a" },
	"sedBlocks":  func(n int) string { return "sed '" + strings.Repeat("/x/{", n/8) + strings.Repeat("}", n/8) + "' a" },
	"sedWrites":  func(n int) string { return "sed '" + strings.Repeat("w a\n", n/4) + "' a" },
	"sedS":       func(n int) string { return "sed 's/" + strings.Repeat(`\(a*\)*`, n/9) + "/b/' a" },
	"awk":        func(n int) string { return "awk '" + strings.Repeat("{print $1}\n", n/11) + "' a" },
	"awkParens":  func(n int) string { return "awk '{x=" + strings.Repeat("-", n) + "1}' a" },
	"awkReads":   func(n int) string { return "awk '{" + strings.Repeat("getline<a;", n/10) + "}' a" },
	"jq":         func(n int) string { return "jq '" + strings.Repeat(".a|", n/3) + ".' a" },
	"jqArrays":   func(n int) string { return "jq '" + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + "' a" },
	"jqNames":    func(n int) string { return "jq '" + strings.Repeat("a,", n/2) + "a' a" },
	"python":     func(n int) string { return "python3 -c '" + strings.Repeat("a=1;", n/4) + "'" },
	"sql":        func(n int) string { return "sqlite3 a '" + strings.Repeat("select 1;", n/9) + "'" },
	"tar":        func(n int) string { return "tar cf x" + strings.Repeat(" -C a b", n/7) },
	"gitC":       func(n int) string { return "git" + strings.Repeat(" -C a", n/5) + " status" },
	"gitPaths":   func(n int) string { return "git add --" + strings.Repeat(" a", n/2) },
	"curl":       func(n int) string { return "curl" + strings.Repeat(" http://a", n/9) },
	"curlConfig": func(n int) string { return "curl" + strings.Repeat(" -d @a", n/6) + " http://a" },
	"copies":     func(n int) string { return "cp" + strings.Repeat(" a", n/2) + " b" },
	"moves":      func(n int) string { return "mv" + strings.Repeat(" a", 900) + " " + strings.Repeat("b", n-1900) },
	"long":       func(n int) string { return "cat " + strings.Repeat("a", n) },
	"cluster":    func(n int) string { return "ls -" + strings.Repeat("l", n) },
	"unknown":    func(n int) string { return "grep --" + strings.Repeat("x", n) },
	"unknowns":   func(n int) string { return "grep" + strings.Repeat(" --a", n/4) },
	"wrappers":   func(n int) string { return strings.Repeat("env ", n/4) + "ls" },
	"settings":   func(n int) string { return "env" + strings.Repeat(" A=b", n/4) + " ls" },
	"assigns":    func(n int) string { return strings.Repeat("A=b ", n/4) + "ls" },
	"xargs":      func(n int) string { return "ls|" + strings.Repeat("xargs ", n/6) + "cat" },
	"shellText":  func(n int) string { return "sh -c '" + strings.Repeat("cat a|", n/6) + "cat'" },
	"shellsIn":   func(n int) string { return strings.Repeat("sh -c 'ls;ls;ls';", min(n/17, 256)) },
	"findShells": func(n int) string { return "find ." + strings.Repeat(` -exec sh -c 'ls;ls' \;`, n/23) },
	"unicode":    func(n int) string { return "echo " + strings.Repeat("é", n/2) },
	"comment":    func(n int) string { return "ls #" + strings.Repeat("(", 90) + strings.Repeat("a", n) },
	"rms":        func(n int) string { return strings.Repeat("rm ", n/3) + "x" },
	"bombs":      func(n int) string { return "echo '" + strings.Repeat("a(){|", n/5) + "'" },
	"shellsFull": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("sh -c '"+strings.Repeat("ls;", 250)+"';", n/760), ";")
	},
	"cds":    func(n int) string { return strings.Repeat("cd a||", 7) + "cat" + strings.Repeat(" x", 990) },
	"into":   func(n int) string { return "cp " + strings.Repeat("a ", 490) + strings.Repeat("b/", 500) },
	"tildes": func(n int) string { return "cat" + strings.Repeat(" ~/a", n/4) },
	"xtrace": func(n int) string { return "ls -la" + strings.Repeat(" a", 900) + strings.Repeat(" >b", min(100, n/3)) },
}
