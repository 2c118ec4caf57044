package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward/sandbox"
	"github.com/toolward/toolward/sandbox/seccomp"
)

// securityOptions are the options that no container is without.
func (e *Engine) securityOptions(spec *sandbox.Spec, daemon *daemon) ([]string, error) {
	filter, err := profileOf(spec.Docker.SeccompProfile, spec.Ptrace)
	if err != nil {
		return nil, err
	}
	text := string(filter)
	if daemon.podman {
		if text, err = e.profileForPodman(filter); err != nil {
			return nil, err
		}
	}
	options := []string{"no-new-privileges", "seccomp=" + text}
	if profile := spec.Docker.AppArmor; profile != "" {
		options = append(options, "apparmor="+profile)
	}
	for _, option := range options {
		if _, value, _ := strings.Cut(option, "="); strings.EqualFold(strings.TrimSpace(value), "unconfined") {
			return nil, sandbox.Errorf(sandbox.CodeConfig, "the profile %q confines nothing", value)
		}
	}
	return options, nil
}

// profileOf is the filter for system calls: that of the configuration, or the shipped one.
func profileOf(file string, ptrace bool) (filter []byte, err error) {
	if file != "" {
		filter, err = os.ReadFile(file)
	} else {
		filter, err = seccomp.New(seccomp.Options{Ptrace: ptrace}).Docker()
	}
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeConfig, "the filter for system calls: %v", err)
	}
	return filter, nil
}

// profileForPodman is the name of a file with the filter: Podman takes no content, and reads the file on its own machine.
func (e *Engine) profileForPodman(filter []byte) (string, error) {
	e.mu.Lock()
	local := e.endpoint.local()
	e.mu.Unlock()
	if !local {
		return "", &sandbox.Error{
			Code: sandbox.CodeUnavailable, Text: "Podman takes the filter for system calls only from a file of its own machine, and it is on another one",
			Fix: "use Podman's socket on this machine, or Docker",
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "find a place for the filter for system calls: %v", err)
	}
	return writeProfile(filepath.Join(cache, sandbox.Brand), filter)
}

// writeProfile keeps a filter in a directory under a name that says what it holds: one that was written earlier is never
// changed.
func writeProfile(directory string, filter []byte) (string, error) {
	sum := sha256.Sum256(filter)
	name := filepath.Join(directory, "seccomp-"+hex.EncodeToString(sum[:8])+".json")
	if have, err := os.ReadFile(name); err == nil && string(have) == string(filter) {
		return name, nil
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "write the filter for system calls: %v", err)
	}
	f, err := os.CreateTemp(directory, ".seccomp-")
	if err == nil {
		_, err = f.Write(filter)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = os.Rename(f.Name(), name) // whoever reads it meanwhile sees all of it or nothing
		} else {
			_ = os.Remove(f.Name()) // it failed already
		}
	}
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "write the filter for system calls: %v", err)
	}
	return name, nil
}
