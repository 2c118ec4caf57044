package command

import (
	"fmt"
	"strings"
)

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
	"moves": func(n int) string {
		return "mv" + strings.Repeat(" a", 900) + " " + strings.Repeat("b", max(1, n-1900))
	},
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

	"braceSegments": func(n int) string { return strings.Repeat("echo {1..999};", min(n/14, 255)) },
	"globSegments":  func(n int) string { return strings.Repeat("cat *;", min(n/6, 255)) },
	"tildeSegments": func(n int) string {
		return strings.TrimSuffix(strings.Repeat("cat"+strings.Repeat(" ~/a", max(1, n/1280-1))+"|", min(n/20, 255)), "|")
	},
	"parameterNames": func(n int) string { return "cat" + numbered(" $A%d", n) },
	"foreignWords":   func(n int) string { return "cat" + numbered(" =a%d", n) },
	"backslashes":    func(n int) string { return "echo " + strings.Repeat(`\\`, n/2) },
	"quotedPieces":   func(n int) string { return "echo " + strings.Repeat(`a'b'"c"\d`, n/9) },
	"heredocNames":   func(n int) string { return "cat <<E\n" + strings.Repeat("$A\n", n/3) + "E" },
	"heredocTabs":    func(n int) string { return "cat <<-'E'\n" + strings.Repeat("\ta\n", n/3) + "E" },
	"longOption":     func(n int) string { return "git --" + strings.Repeat("a", n) + "=b status" },
	"gitSettings":    func(n int) string { return "git" + numbered(" -c a.b%d=c", n) + " status" },
	"gitPathspecs":   func(n int) string { return "git log --" + numbered(" a/b%d", n) },
	"makeVariables":  func(n int) string { return "make" + numbered(" A%d=b", n) },
	"headNumbers":    func(n int) string { return "head" + strings.Repeat(" -n1", n/4) },
	"sortKeys":       func(n int) string { return "sort" + numbered(" -k%d", n) },
	"findOr":         func(n int) string { return "find ." + numbered(" -o -name a%d", n) },
	"findParens": func(n int) string {
		return "find . " + strings.Repeat(`\( `, n/6) + "-true" + strings.Repeat(` \)`, n/6)
	},
	"findPrint": func(n int) string { return "find ." + numbered(" -fprint a%d", n) },
	"testOr":    func(n int) string { return "test a" + strings.Repeat(" -o -f a", n/8) },
	"jqScript":  func(n int) string { return "jq '" + strings.Repeat("def f: .a | map(.b); ", n/21) + ".' a" },
	"jqStrings": func(n int) string {
		return `jq '` + strings.Repeat(`"\(`, n/6) + "." + strings.Repeat(`)"`, n/6) + `' a`
	},
	"jqObject":     func(n int) string { return "jq '{" + numbered("a%d:.b,", n) + "z:1}' a" },
	"awkRegex":     func(n int) string { return "awk '/" + strings.Repeat("(a|", n/4) + strings.Repeat(")", n/4) + "/' a" },
	"awkConcat":    func(n int) string { return "awk '{x=" + strings.Repeat(`"a" `, n/4) + "}' a" },
	"awkFunctions": func(n int) string { return "awk '" + numbered("function f%d(a) { return a } ", n) + "' a" },
	"sedLabels":    func(n int) string { return "sed '" + numbered(":a%d;", n) + "' a" },
	"sedTexts":     func(n int) string { return "sed '" + strings.Repeat("a\\\ntext\n", n/8) + "' a" },
	"sedScripts":   func(n int) string { return "sed" + strings.Repeat(" -e p", n/6) + " a" },
	"pythonLine":   func(n int) string { return "python3 -c '" + strings.Repeat("f(", n/3) + strings.Repeat(")", n/3) + "'" },
	"nodeLine":     func(n int) string { return "node -e '" + strings.Repeat("a;", n/2) + "'" },
	"psql": func(n int) string {
		return "psql -c 'select " + strings.Repeat("(", n/2) + strings.Repeat(")", n/2) + "'"
	},
	"sqlStrings":    func(n int) string { return `sqlite3 a "select ` + strings.Repeat("'a'||", n/5) + `'b'"` },
	"chmodModes":    func(n int) string { return "chmod " + strings.Repeat("a+x,", n/4) + "a+x b" },
	"dockerVolumes": func(n int) string { return "docker run" + numbered(" -v /a%d:/b", n) + " c" },
	"curlHeaders":   func(n int) string { return "curl" + numbered(" -H a:b%d", n) + " http://a" },
	"curlForms":     func(n int) string { return "curl" + numbered(" -F a=@b%d", n) + " http://a" },
	"wgetLists":     func(n int) string { return "wget" + numbered(" -i a%d", n) },
	"sshOptions":    func(n int) string { return "ssh" + numbered(" -o A=b%d", n) + " c" },
	"rsyncFilters":  func(n int) string { return "rsync" + numbered(" --exclude=a%d", n) + " b c" },
	"tarMembers":    func(n int) string { return "tar xf a" + numbered(" b/%d", n) },
	"zipMembers":    func(n int) string { return "zip a" + numbered(" b%d", n) },
	"goPackages":    func(n int) string { return "go test" + numbered(" ./a%d/...", n) },
	"goFlags":       func(n int) string { return "go build" + strings.Repeat(" -tags a", n/8) },
	"npmPackages":   func(n int) string { return "npm install" + numbered(" a%d@1", n) },
	"pipPackages":   func(n int) string { return "pip install" + numbered(" a%d==1", n) },
	"cargoFeatures": func(n int) string { return "cargo build" + strings.Repeat(" --features a", n/13) },
	"kubectl":       func(n int) string { return "kubectl get" + numbered(" pod/a%d", n) },
	"java":          func(n int) string { return "java -cp " + strings.Repeat("a:", n/2) + " B" },
	"xargsReplace":  func(n int) string { return "ls | xargs -I{} cat" + strings.Repeat(" {}", n/3) },
	"xargsShells":   func(n int) string { return "ls | xargs sh -c '" + strings.Repeat("cat a|", n/6) + "cat'" },
	"envs":          func(n int) string { return "env " + numbered("A%d=b ", n) + "ls" },
	"deepShells":    func(n int) string { return `sh -c "sh -c 'sh -c \"` + strings.Repeat("ls;", n/3) + `\"'"` },
	"upper":         func(n int) string { return "grep " + strings.Repeat("A", n) + " a" },
	"dots":          func(n int) string { return "cat " + strings.Repeat("./", n/2) + "a" },
	"slashes":       func(n int) string { return "cat " + strings.Repeat("/", n) + "a" },
	"manyFiles":     func(n int) string { return "cat" + numbered(" a%d", n) },
	"manyDirs":      func(n int) string { return "cat" + numbered(" d%d/a", n) },
	"removes":       func(n int) string { return "rm -rf" + numbered(" a%d", n) },
	"touches":       func(n int) string { return numbered("touch a%d;", min(n, 2000)) },
	"redirectEach":  func(n int) string { return numbered("ls >a%d;", min(n, 2000)) },
	"programs":      func(n int) string { return numbered("prog%d;", min(n, 2000)) },
	"programPaths":  func(n int) string { return numbered("./bin/prog%d;", min(n, 3000)) },
	"cdEach":        func(n int) string { return numbered("cd d%d&&", min(n, 1800)) + "ls" },
	"andOr":         func(n int) string { return strings.Repeat("ls&&ls||", min(n/8, 127)) + "ls" },
	"evals":         func(n int) string { return strings.Repeat("eval ", n/5) },
	"substitutions": func(n int) string { return "bash -c 'a $(b' " + strings.Repeat("$(", 20) + strings.Repeat("a", n-100) },
}

// numbered repeats a format with growing numbers up to a length.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n-8; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
