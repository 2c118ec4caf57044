// Package packs has the hosts of package registries as named lists, one text file for each: what builds fetch from, so that
// people decide about "npm" and not about each of its hosts.
//
// A pack holds hosts that serve packages to everybody. No pack has a host on which strangers keep files of any kind at will,
// such as the buckets of a cloud: it would be a way out for whatever a hostile program wants to send.
package packs

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/toolward/toolward/netguard"
)

//go:embed *.txt
var files embed.FS

// Remotes is the pack of the hosts that the git remotes of a workspace are fetched from. It has no list: whoever decides about
// connections knows them.
const Remotes = "remotes"

// all is every pack by its name.
var all = read(files)

func read(from fs.FS) map[string][]netguard.Pattern {
	names, err := fs.Glob(from, "*.txt")
	if err != nil {
		panic(err) // the pattern is ours
	}
	packs := map[string][]netguard.Pattern{}
	for _, name := range names {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			panic(err) // it is in the program
		}
		pack := strings.TrimSuffix(name, ".txt")
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			p, err := netguard.ParsePattern(line)
			if err != nil {
				panic(fmt.Sprintf("%s: %v", name, err)) // the tests of this package have read the same files
			}
			packs[pack] = append(packs[pack], p)
		}
	}
	return packs
}

// Names are the names of all packs, in order.
func Names() []string {
	names := []string{Remotes}
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Hosts are the hosts of a pack; none if there is no such pack.
func Hosts(name string) []netguard.Pattern { return slices.Clone(all[name]) }

// Of is the first of some packs that has a host; "" if none does.
func Of(names []string, host string, port uint16) string {
	for _, name := range names {
		if slices.ContainsFunc(all[name], func(p netguard.Pattern) bool { return p.Matches(host, port) }) {
			return name
		}
	}
	return ""
}
