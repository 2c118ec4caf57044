package egress

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/toolward/toolward/netguard"
)

// remotes knows where the git remotes of workspaces are, as they were before the first command of a sandbox ran there. A command
// can write .git/config, or make the repository anew: a remote that comes later opens nothing, in no session, and asks as any
// other host does. It is data to us: no git is run.
type remotes struct {
	path string // of the file that remembers them; "" keeps nothing, and nothing is reached by it

	mu     sync.Mutex
	loaded bool
	known  map[string][]string // workspace → host:port
}

const (
	maxWorkspaces = 10_000
	maxRemotes    = 64
	maxGitConfig  = 256 << 10
)

// begin remembers the remotes of a workspace in which nothing has run yet. One that cannot be kept refuses the use of the
// sandbox: the next start would take what its commands have written for what the person had.
func (r *remotes) begin(workspace string) error {
	if r.path == "" || workspace == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		return err
	}
	if _, known := r.known[workspace]; known || len(r.known) >= maxWorkspaces {
		return nil
	}
	r.known[workspace] = readRemotes(workspace)
	if err := r.keep(); err != nil {
		delete(r.known, workspace)
		return fmt.Errorf("remember the git remotes of %s: %w", workspace, err)
	}
	return nil
}

// had reports whether a workspace had a remote there.
func (r *remotes) had(workspace string, to target) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.known[workspace], to.String())
}

// load reads the file, once. The caller holds the mutex.
func (r *remotes) load() error {
	if r.loaded {
		return nil
	}
	content, err := os.ReadFile(r.path)
	known := map[string][]string{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(content, &known); err != nil {
			return fmt.Errorf("%s: %w: move it away if people are to be asked about all remotes of new workspaces only", r.path, err)
		}
	}
	r.known, r.loaded = known, true
	return nil
}

// keep writes the file, all or nothing. The caller holds the mutex.
func (r *remotes) keep() error {
	content, err := json.MarshalIndent(r.known, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(append(content, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// readRemotes are the hosts of the remotes that a workspace has now and that are reached over HTTPS.
func readRemotes(workspace string) []string {
	hosts := []string{}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return hosts
	}
	defer root.Close()
	// A pipe in its place must not hold us up, nor a link lead out of the workspace.
	f, err := root.OpenFile(filepath.Join(".git", "config"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return hosts
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		return hosts
	}
	content, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
	if err != nil {
		return hosts
	}
	return parseRemotes(content)
}

// parseRemotes reads a git configuration as far as git itself writes it. What is written in another way names no host.
func parseRemotes(content []byte) []string {
	hosts, remote := []string{}, false
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() && len(hosts) < maxRemotes {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			remote = strings.HasPrefix(line, `[remote "`) && strings.HasSuffix(line, `"]`)
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if !remote || !strings.EqualFold(strings.TrimSpace(key), "url") {
			continue
		}
		if host, ok := hostOf(strings.TrimSpace(value)); ok && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// hostOf is where a remote is fetched from over HTTPS. Others are not reached from a sandbox, so that nothing is to be opened.
func hostOf(address string) (hostPort string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || strings.ContainsAny(address, " \t\"\\") {
		return "", false
	}
	port := uint64(443)
	if text := u.Port(); text != "" {
		if port, err = strconv.ParseUint(text, 10, 16); err != nil {
			return "", false
		}
	}
	var strict netguard.Policy
	host, err := strict.Host(bracketed(u.Hostname()))
	if err != nil || strict.Port(uint16(port)) != nil {
		return "", false
	}
	return target{host, uint16(port)}.String(), true
}

// remoteNow reports whether a workspace has a remote there now.
func remoteNow(workspace string, to target) bool {
	return workspace != "" && slices.Contains(readRemotes(workspace), to.String())
}
