package settings

import (
	"bufio"
	"cmp"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

// Person is whose machine it is, as programs inside are told. The zero value tells nothing.
type Person struct {
	Name   string
	Shell  string     // absolute; one of the system's
	Locale []Variable // LANG and its like, and TZ
	Git    GitIdentity
}

// localeNames are the variables that say how people write. None of them makes a program load anything but the system's own.
var localeNames = []string{
	"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
	"LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME", "TZ",
}

// thisPerson is who the gateway runs as.
func thisPerson(home string) Person {
	p := Person{Name: os.Getenv("USER"), Shell: systemShell(cmp.Or(os.Getenv("SHELL"), accountShell("/etc/passwd"))), Git: gitIdentity(home)}
	if account, err := user.Current(); err == nil {
		p.Name = account.Username
	}
	for _, name := range localeNames {
		// A path would be a file of the machine, which is not inside.
		if value := os.Getenv(name); value != "" && !strings.HasPrefix(strings.TrimPrefix(value, ":"), "/") {
			p.Locale = append(p.Locale, Variable{name, value})
		}
	}
	return p
}

// systemShell is a shell that sandboxes have where they have the machine's programs.
func systemShell(shell string) string {
	real, err := filepath.EvalSymlinks(shell)
	if info, statErr := os.Stat(shell); err != nil || statErr != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "/bin/sh"
	}
	for _, dir := range []string{"/usr", "/bin"} {
		if place.Within(real, dir) && path.IsAbs(shell) && path.Clean(shell) == shell && (place.Within(shell, "/usr") || place.Within(shell, "/bin")) {
			return shell
		}
	}
	return "/bin/sh"
}

// accountShell is the shell in a list of users.
func accountShell(passwd string) string {
	f, err := os.Open(passwd)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) == 7 && fields[2] == strconv.Itoa(os.Getuid()) {
			return fields[6]
		}
	}
	return ""
}

// variables are what tells of the person. An image knows the locales that it has, and no others.
func (p Person) variables(engine string) []Variable {
	var all []Variable
	if p.Name != "" {
		all = append(all, Variable{"USER", p.Name}, Variable{"LOGNAME", p.Name})
	}
	if p.Shell != "" {
		all = append(all, Variable{"SHELL", p.Shell})
	}
	for _, v := range p.Locale {
		if engine != sandbox.EngineDocker || v.Name == "TZ" {
			all = append(all, v)
		}
	}
	return all
}
