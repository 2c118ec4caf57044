package command

import (
	"errors"
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

// The bounds of what is looked at; more asks. An argument may hold a sentence or a list, but not thousands of names.
const (
	maxFloorArgs  = 256
	maxFloorNames = 32 // in one argument
)

// floor finds the effects that arguments show by themselves.
func (v *evaluation) floor(seg *Segment) (effects []shell.Effect) {
	if len(seg.Args) > maxFloorArgs || len(seg.OtherDir) >= maxDirs {
		return []shell.Effect{{Kind: shell.Unknown, Via: "more than anybody looks through"}}
	}
	for _, arg := range seg.Args {
		names, all := namedIn(arg)
		if !all {
			effects = append(effects, shell.Effect{Kind: shell.Unknown, Via: arg})
		}
		for _, name := range names {
			if effect, tells := v.named(seg, name); tells {
				effect.Via = arg
				effects = append(effects, effect)
			}
		}
	}
	return effects
}

// namedIn lists what an argument may name: itself, the tail of a short option, and what stands behind each sign that separates a
// name from a value in one program or another; all of it, or not.
func namedIn(arg string) (names []string, all bool) {
	switch {
	case !strings.HasPrefix(arg, "-"):
		names = append(names, arg)
	case !strings.HasPrefix(arg, "--") && len(arg) > 2:
		names = append(names, arg[2:])
	}
	for i := range len(arg) {
		if strings.IndexByte("=@:,", arg[i]) < 0 {
			continue
		}
		if len(names) == maxFloorNames {
			return names, false
		}
		names = append(names, arg[i+1:])
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" }), true
}

// named is the effect of naming something, if that tells of one.
func (v *evaluation) named(seg *Segment, name string) (effect shell.Effect, tells bool) {
	host, readable := hostNamed(name)
	switch {
	case !readable:
		return shell.Effect{Kind: shell.Unknown, Text: "an address that cannot be read"}, true
	case host != "":
		return shell.Effect{Kind: shell.Network, Host: host}, true
	}
	if program := plainName(path.Base(name)); isShell(program) || isMultiplexer(program) || carriesCode(program) && path.IsAbs(name) {
		return shell.Effect{Kind: shell.Unknown, Text: name + ", a program that runs code"}, true
	}
	if v.r.Places == nil { // nobody can tell what a path is: what names one asks
		return shell.Effect{Kind: shell.Reads, Path: name}, strings.Contains(name, "/")
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
		switch {
		case errors.Is(err, place.ErrBadPath):
			return shell.Effect{}, false // no file can have this name
		case err != nil, r.Zone == place.Self, r.Zone == place.Secret:
			return shell.Effect{Kind: shell.Reads, Path: name}, true
		case r.Zone == place.Protected:
			return shell.Effect{Kind: shell.Writes, Path: name}, true
		}
	}
	return shell.Effect{}, false
}

// hostNamed is the host of an address, or of a "user@host" with what may follow; "" if it is neither, or this machine. It is not
// readable if it is an address of which nobody knows where it leads.
func hostNamed(name string) (host string, readable bool) {
	if scheme, rest, ok := strings.Cut(name, "://"); ok {
		if strings.HasSuffix(strings.ToLower(scheme), "file") {
			return "", true
		}
		u, err := url.Parse("x://" + rest)
		if err != nil {
			return "", false
		}
		host = u.Hostname()
	} else if _, rest, ok := strings.Cut(name, "@"); ok {
		host, _, _ = strings.Cut(rest, ":")
		host, _, _ = strings.Cut(host, "/")
		if !strings.Contains(host, ".") || strings.ContainsAny(host, "{}") || strings.IndexFunc(host, isLetter) < 0 {
			return "", true // "@types/node", "HEAD@{1}", "tool@latest", "pkg@1.2.3"
		}
	}
	if host == "localhost" || host == "127.0.0.1" || host == "::1" {
		return "", true
	}
	return host, true
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
