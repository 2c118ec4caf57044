package main

import (
	"fmt"
	"runtime/debug"
)

// version is set by release builds; else the build information tells.
var version = ""

func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "development " + s.Value[:12]
		}
	}
	return "development"
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(inv *invocation) error {
	if inv.json {
		return inv.printJSON(map[string]string{"version": programVersion()})
	}
	fmt.Fprintln(inv.stdout, "toolward", programVersion())
	return nil
}
