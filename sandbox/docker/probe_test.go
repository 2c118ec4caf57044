package docker

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/system"

	"github.com/toolward/toolward/sandbox"
)

// A label is given by name, as root: where labels count, a bind that asks for one is refused, and elsewhere it means nothing.
func TestLabelsOfSELinux(t *testing.T) {
	for _, c := range []struct {
		label   string
		options []string
		refused bool
	}{
		{"z", []string{"name=seccomp,profile=default"}, false},
		{"", []string{"name=seccomp,profile=default", "name=selinux"}, false},
		{"z", []string{"name=seccomp,profile=default", "name=selinux"}, true},
		{"Z", []string{"name=seccomp,profile=default", "name=selinux"}, true},
	} {
		d := &daemon{Info: system.Info{OSType: "linux", Architecture: "x86_64", SecurityOptions: c.options}}
		if !sameArchitecture(d.Architecture) {
			d.Architecture = "aarch64"
		}
		spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Source: "/srv/data", Target: "/data", SELinux: c.label}}}
		err := d.refuse(spec)
		if (err != nil) != c.refused || err != nil && (sandbox.CodeOf(err) != sandbox.CodeConfig || !strings.Contains(err.Error(), "/srv/data")) {
			t.Errorf("%q with %v: %v", c.label, c.options, err)
		}
	}
}
