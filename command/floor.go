package command

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/toolward/toolward/place"
	"github.com/toolward/toolward/shell"
)

// An entry says yes to a program. Of one without a profile nobody knows what it does with its arguments, but some arguments tell:
// "tool --config=@~/.ssh/id_ed25519", "tool -x/bin/sh", "tool --to https://collector.example". A model that was talked into it would
// use a harmless tool that a person has allowed to read a key, to start a shell, or to send something away. So what such an
// argument names is an effect, which is judged as that of a known program is.

// maxFloorArgs bounds how many arguments of a program without a profile are looked at; more ask.
const maxFloorArgs = 256

// floor finds the effects that arguments show by themselves.
func (v *evaluation) floor(seg *Segment) (effects []shell.Effect) {
	if len(seg.Args) > maxFloorArgs {
		return []shell.Effect{{Kind: shell.Unknown, Via: "more arguments than anybody reads"}}
	}
	for _, arg := range seg.Args {
		for _, named := range namedIn(arg) {
			effect, tells := v.named(seg, named)
			effect.Via = arg
			if tells && !slices.ContainsFunc(effects, func(e shell.Effect) bool { return e.Kind == effect.Kind && e.Via == arg }) {
				effects = append(effects, effect)
			}
		}
	}
	return effects
}

// namedIn lists what an argument may name: itself, the tail of a short option, and what stands behind each sign that separates a
// name from a value in one program or another.
func namedIn(arg string) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case !strings.HasPrefix(arg, "-"):
		add(arg)
	case !strings.HasPrefix(arg, "--") && len(arg) > 2:
		add(arg[2:])
	}
	for i := range len(arg) {
		if strings.IndexByte("=@:,", arg[i]) >= 0 {
			add(arg[i+1:])
		}
	}
	return names
}

// named is the effect of naming something, if that tells of one.
func (v *evaluation) named(seg *Segment, name string) (effect shell.Effect, tells bool) {
	if host := hostNamed(name); host != "" {
		return shell.Effect{Kind: shell.Network, Host: host}, true
	}
	if program := plainName(path.Base(name)); isShell(program) || isMultiplexer(program) || carriesCode(program) && path.IsAbs(name) {
		return shell.Effect{Kind: shell.Unknown, Text: name + ", a program that runs code"}, true
	}
	if v.r.Places == nil {
		return shell.Effect{}, false
	}
	if at := strings.Index(name, "file://"); at >= 0 {
		name = name[at+len("file://"):]
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok { // programs replace it themselves where a shell does not
		name = path.Join(v.r.Places.Layout().Home, rest)
	}
	for i := -1; i < len(seg.OtherDir); i++ {
		dir := seg.Dir
		if i >= 0 {
			dir = seg.OtherDir[i]
		}
		r, err := v.locate(dir, name)
		if err != nil {
			continue // no path
		}
		switch r.Zone {
		case place.Self, place.Secret:
			return shell.Effect{Kind: shell.Reads, Path: name}, true
		case place.Protected:
			return shell.Effect{Kind: shell.Writes, Path: name}, true
		}
	}
	return shell.Effect{}, false
}

// hostNamed is the host of an address, or of a "user@host" with what may follow; "" if it is neither, or this machine.
func hostNamed(name string) string {
	host := ""
	if scheme, rest, ok := strings.Cut(name, "://"); ok {
		if strings.HasSuffix(strings.ToLower(scheme), "file") {
			return ""
		}
		u, err := url.Parse("x://" + rest)
		if err != nil {
			return "an address that cannot be read"
		}
		host = u.Hostname()
	} else if _, rest, ok := strings.Cut(name, "@"); ok {
		host, _, _ = strings.Cut(rest, ":")
		host, _, _ = strings.Cut(host, "/")
		if !strings.Contains(host, ".") { // "@types/node", "HEAD@{1}", "tool@latest"
			return ""
		}
		if strings.ContainsAny(host, "{}") || strings.IndexFunc(host, isLetter) < 0 {
			return "" // "pkg@1.2.3"
		}
	}
	if host == "localhost" || host == "127.0.0.1" || host == "::1" {
		return ""
	}
	return host
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
