package profiles

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toolward/toolward/shell"
)

// Programs that show how something was set up show the passwords that it was given: "docker inspect web" those in the
// environment of a container, "docker compose config" those of .env.

// plainField is a field of a container or image in which no password stands.
var plainField = regexp.MustCompile(`^\.(State|NetworkSettings|HostConfig\.(RestartPolicy|NetworkMode|PortBindings|Memory|NanoCpus)|Mounts|` +
	`Id|Name|Image|Created|Driver|Platform|RestartCount|RepoTags|RepoDigests|Size|Architecture|Os|Config\.(Image|ExposedPorts|WorkingDir|User|Hostname))\b[.A-Za-z0-9]*$`)

// template finds the expressions of a template.
var template = regexp.MustCompile(`\{\{(.*?)\}\}`)

// checkInspected: without a template everything is shown, and a template may show everything.
func checkInspected(a *arguments) {
	format, given := a.value("-f", "--format")
	expressions := template.FindAllStringSubmatch(format, -1)
	if given && len(expressions) > 0 && !slices.ContainsFunc(expressions, func(e []string) bool {
		field := strings.TrimSpace(strings.TrimPrefix(strings.Trim(e[1], "- "), "json "))
		return !plainField.MatchString(field)
	}) {
		return
	}
	a.does(shell.Effect{Kind: shell.Environment, Via: "inspect"})
}

// checkComposed: these options leave nothing of values.
func checkComposed(a *arguments) {
	if !slices.ContainsFunc([]string{"-q", "--quiet", "--services", "--images", "--volumes", "--profiles", "--hash", "--help"}, a.has) {
		a.does(shell.Effect{Kind: shell.Environment, Via: "config"})
	}
}

// checkShownUnits: all properties of a service, its environment among them, unless others are named.
func checkShownUnits(a *arguments) {
	for _, g := range a.given {
		if g.attached && !strings.Contains(g.value, "Environment") && !strings.Contains(g.value, "Exec") {
			return
		}
	}
	a.does(shell.Effect{Kind: shell.Environment, Via: "show"})
}

// secretSetting is the name of a setting that signs in, or of an address that may.
var secretSetting = regexp.MustCompile(`(?i)auth|token|passw|secret|cert|key|proxy|registry|^_|^//`)

// checkSecretSetting: a setting by its name, or all of them.
func checkSecretSetting(a *arguments) {
	for _, name := range a.operands {
		if secretSetting.MatchString(name) && name != "registry" {
			a.does(shell.Effect{Kind: shell.Environment, Via: name})
		}
	}
	if len(a.operands) == 0 {
		a.does(shell.Effect{Kind: shell.Environment, Via: "config"})
	}
}
