package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// javaProperties are properties of the virtual machine that choose code or where it comes from.
var javaProperties = regexp.MustCompile(`(?i)^(java\.(security|system|library|ext|endorsed|class|rmi|util\.logging|net)|jdk\.|sun\.|com\.sun\.|javax?\.xml|org\.xml|user\.|log4j|logback|logging\.)`)

// javaXX are settings of the virtual machine that are numbers and switches; others run programs ("OnError") or name
// files.
var javaXX = regexp.MustCompile(`^([+-](Use\w*|Always\w*|ShowCodeDetails\w*|ExitOnOutOfMemoryError|CrashOnOutOfMemoryError|Tiered\w*|Print\w*|EnableDynamicAgentLoading|UnlockExperimentalVMOptions|UnlockDiagnosticVMOptions)|\w*(Size|Percentage|Percent|Count|Ratio|Millis|Threshold|Level|Threads|Limit)=\w+(\.\d+)?)$`)

// checkJava looks at what the virtual machine loads: the class path, and properties.
func checkJava(a *arguments) {
	checkNoResponseFiles(a)
	for _, g := range a.given {
		ok := true
		switch g.spelling {
		case "-D*":
			ok = !javaProperties.MatchString(g.value)
		case "-XX:*":
			ok = javaXX.MatchString(g.value)
		case "-Xlog*":
			ok = !strings.Contains(g.value, "file=") && !strings.Contains(g.value, "/")
		case "-Xshare*":
			ok = slices.Contains([]string{":auto", ":on", ":off"}, g.value)
		case "-cp", "-classpath", "--class-path", "-p", "--module-path":
			classPath(a, g.value, g.spelling)
		case "-m", "--module":
			a.does(shell.Effect{Kind: shell.Project, Via: g.spelling})
		}
		if !ok {
			a.does(shell.Effect{Kind: shell.Unknown, Text: g.value, Via: g.spelling})
		}
	}
	if len(a.operands) == 0 || a.has("-jar") {
		return
	}
	// A file of source is compiled and run; anything else is a class of the class path.
	if main := a.operands[0]; strings.HasSuffix(main, ".java") || strings.Contains(main, "/") {
		a.word(Role{Name: "script"}, main, "")
	} else {
		a.does(shell.Effect{Kind: shell.Project, Via: main})
	}
}

func classPath(a *arguments, value, via string) {
	for _, place := range strings.Split(value, ":") {
		if place != "" {
			a.does(shell.Effect{Kind: shell.Enters, Path: strings.TrimSuffix(place, "/*"), Via: via})
		}
	}
}

// javaPaths are the options that say where classes lie.
var javaPaths = strings.Fields("-cp -classpath -class-path -p -module-path -sourcepath -source-path -module-source-path")

// checkJavaCompiler: without a place for them, classes lie beside their sources.
func checkJavaCompiler(a *arguments) {
	checkNoResponseFiles(a)
	for _, g := range a.given {
		if !slices.Contains(javaPaths, g.spelling) {
			continue
		}
		for place := range strings.SplitSeq(g.value, ":") { // the compiler runs processors of annotations that lie there
			a.does(shell.Effect{Kind: shell.Enters, Path: strings.TrimSuffix(place, "*"), Via: g.spelling})
		}
	}
	if len(a.operands) > 0 && !a.has("-d") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
}

// checkJar reads the arguments of jar: letters, as of tar, and files.
func checkJar(a *arguments) {
	args := a.operands
	if len(args) == 1 && (args[0] == "--version" || args[0] == "--help") {
		return
	}
	letters := ""
	if len(args) > 0 {
		letters = strings.TrimPrefix(args[0], "-")
	}
	if len(args) < 2 || letters == "" || strings.Trim(letters, "ctxufv0Mme") != "" || !strings.Contains(letters, "f") {
		a.does(shell.Effect{Kind: shell.Unknown, Via: strings.Join(args, " ")})
		return
	}
	if strings.ContainsAny(letters, "me") && strings.Trim(letters, "cvfe0M") != "" {
		a.does(shell.Effect{Kind: shell.Unknown, Via: args[0]})
		return
	}
	args = args[1:]
	kind := shell.Reads
	if strings.ContainsAny(letters, "cu") {
		kind = shell.Writes
	}
	// With "e", the name of a class stands before or behind the archive, in the order of the letters.
	if e := strings.IndexByte(letters, 'e'); e >= 0 && len(args) > 1 {
		if e < strings.IndexByte(letters, 'f') {
			args = args[1:]
		} else {
			args = slices.Delete(slices.Clone(args), 1, 2)
		}
	}
	a.does(shell.Effect{Kind: kind, Path: args[0]})
	if strings.Contains(letters, "x") {
		a.does(shell.Effect{Kind: shell.Writes, Path: "."})
	}
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "-C" && i+1 < len(args):
			i++
			a.does(shell.Effect{Kind: shell.Reads, Path: args[i]})
		case strings.HasPrefix(args[i], "-"), strings.HasPrefix(args[i], "@"):
			a.does(shell.Effect{Kind: shell.Unknown, Via: args[i]})
		case kind == shell.Writes:
			a.does(shell.Effect{Kind: shell.Reads, Path: args[i]})
		}
	}
}

// mavenProperties are properties that choose what is tested and skipped. Others may be parameters of any plug-in, and
// some of those are programs.
var mavenProperties = regexp.MustCompile(`^((maven\.test\.skip|skip[\w.]*|test|it\.test|groups|excludedGroups|failIfNoTests|surefire\.(failIfNoSpecifiedTests|useFile|rerunFailingTestsCount)|revision|` +
	`spring\.profiles\.active|quarkus\.profile|[\w]+\.skip|maven\.javadoc\.skip|checkstyle\.skip|style\.color|includes|excludes|verbose|newVersion|outputType|detail|includeScope)(=[\w.,:*#!$ -]*)?)$`)

// mavenGoals are the phases, and goals of plug-ins that build, test and tell. A plug-in may be named with its version
// and is fetched then.
var mavenGoals = regexp.MustCompile(`^((pre-)?clean|validate|compile|test-compile|process-(resources|classes|test-resources|test-classes)|generate-(sources|resources|test-sources)|test|package|(pre-|post-)?integration-test|verify|install|site|initialize|` +
	`(dependency:(tree|analyze|list|resolve|go-offline|sources)|help:(effective-pom|active-profiles|describe|effective-settings)|versions:display-[\w-]+|versions:set|spring-boot:(run|build-info|repackage)|quarkus:(dev|build|test)|surefire:test|failsafe:[\w-]+|checkstyle:check|spotless:(check|apply)|spotbugs:check|pmd:check|compiler:[\w-]+|jacoco:report|javadoc:javadoc|jetty:run|formatter:(format|validate)|enforcer:enforce)(@[\w-]+)?)$`)

// checkMaven looks at goals and properties.
func checkMaven(a *arguments) {
	for _, goal := range a.operands {
		if !mavenGoals.MatchString(goal) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: goal})
		}
	}
	for _, g := range a.given {
		if (g.spelling == "-D" || g.spelling == "--define") && !mavenProperties.MatchString(g.value) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: "-D" + g.value})
		}
	}
}

// gradleProperties are properties that choose and report; org.gradle.java.home and -jvmargs choose programs.
var gradleProperties = regexp.MustCompile(`^(org\.gradle\.(caching|parallel|daemon|configureondemand|logging\.level|console|workers\.max|configuration-cache|warning\.mode)|version|[\w]+\.profiles?(\.active)?|spring\.profiles\.active|test\.single|skipTests?|[a-z]\w*)(=[\w.,:*-]*)?$`)

// checkGradle looks at properties, and at tasks that are none: publishing leaves the project.
func checkGradle(a *arguments) {
	for _, g := range a.given {
		if slices.Contains([]string{"-P", "--project-prop", "-D", "--system-prop"}, g.spelling) &&
			(!gradleProperties.MatchString(g.value) || javaProperties.MatchString(g.value)) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: g.spelling + g.value})
		}
	}
	for _, task := range a.operands {
		name := task[strings.LastIndexByte(task, ':')+1:]
		if name == "init" || name == "wrapper" || strings.HasPrefix(name, "publish") || strings.HasPrefix(name, "upload") {
			a.does(shell.Effect{Kind: shell.Unknown, Via: task})
		}
	}
}

// checkSbt: a command of sbt may be text of Scala; tasks with plain names are the project's.
func checkSbt(a *arguments) {
	for _, word := range a.operands {
		if !sbtTask.MatchString(word) {
			a.does(shell.Effect{Kind: shell.Unknown, Via: word})
		}
	}
}

var sbtTask = regexp.MustCompile(`^~?[\w-]+(/[\w:-]+)*( [\w.*:-]+)*$`)
