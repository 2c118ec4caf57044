package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"

	"github.com/toolward/toolward/sandbox"
)

// endpoint is where a container engine listens.
type endpoint struct {
	host     string // unix:///var/run/docker.sock, tcp://host:2376
	certs    string // directory of ca.pem, cert.pem and key.pem; "" is no TLS
	found    string // what named it, for people
	explicit bool   // somebody named it
}

// findEndpoint is where people's own commands would look: DOCKER_HOST, then the context that is in use, then the sockets
// of Docker and Podman, those of the system first.
func findEndpoint() (endpoint, error) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return endpoint{host: host, certs: os.Getenv(client.EnvOverrideCertPath), found: client.EnvOverrideHost, explicit: true}, nil
	}
	name, err := contextName()
	if err != nil {
		return endpoint{}, err
	}
	if name != "" && name != "default" {
		return contextEndpoint(name)
	}
	if path := firstSocket(sockets()); path != "" {
		return endpoint{host: "unix://" + path, found: path}, nil
	}
	return endpoint{host: client.DefaultDockerHost, found: "the default"}, nil
}

// firstSocket is the first that there is, of those that this user may use if there is one.
func firstSocket(paths []string) (closed string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		if !closedToUs("unix://" + path) {
			return path
		}
		closed = cmp.Or(closed, path)
	}
	return closed
}

func sockets() []string {
	list := []string{"/var/run/docker.sock", "/run/docker.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		list = append(list, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman/podman.sock"))
	}
	return append(list, "/run/podman/podman.sock")
}

func configDirectory() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".docker")
}

// contextName is the context in use; "" is the default one.
func contextName() (string, error) {
	if name := os.Getenv("DOCKER_CONTEXT"); name != "" {
		return name, nil
	}
	dir := configDirectory()
	if dir == "" {
		return "", nil
	}
	var settings struct{ CurrentContext string }
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if os.IsNotExist(err) {
		return "", nil
	}
	if err == nil {
		err = json.Unmarshal(data, &settings)
	}
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeUnavailable, "read the settings of docker: %v", err)
	}
	return settings.CurrentContext, nil
}

func contextEndpoint(name string) (endpoint, error) {
	sum := sha256.Sum256([]byte(name))
	id, dir := hex.EncodeToString(sum[:]), configDirectory()
	var meta struct {
		Endpoints struct {
			Docker struct {
				Host          string
				SkipTLSVerify bool
			} `json:"docker"`
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "contexts", "meta", id, "meta.json"))
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	if err != nil {
		return endpoint{}, sandbox.Errorf(sandbox.CodeUnavailable, "read the docker context %q: %v", name, err)
	}
	e := endpoint{host: meta.Endpoints.Docker.Host, found: "the docker context " + name, explicit: true}
	certs := filepath.Join(dir, "contexts", "tls", id, "docker")
	if _, err := os.Stat(filepath.Join(certs, "cert.pem")); err == nil {
		e.certs = certs
	}
	e.host = cmp.Or(e.host, client.DefaultDockerHost)
	return e, nil
}

// open makes a client. Nothing is connected yet.
func (e endpoint) open() (*client.Client, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	options := []client.Opt{client.WithHost(e.host)}
	if e.certs != "" && !e.local() {
		options = append(options, client.WithTLSClientConfig(
			filepath.Join(e.certs, "ca.pem"), filepath.Join(e.certs, "cert.pem"), filepath.Join(e.certs, "key.pem")))
	}
	c, err := client.New(append(options, client.WithAPIVersionFromEnv())...)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeUnavailable, "the container engine at %s: %v", e.host, err)
	}
	return c, nil
}

// absent reports whether there is no container engine for this user, and nobody named one: nothing of ours can be in it, or
// be found in it. A container from before the user lost the right is taken over by its labels when the right is back.
func (e endpoint) absent() bool {
	if e.explicit || !e.local() {
		return false
	}
	_, err := os.Stat(strings.TrimPrefix(e.host, "unix://"))
	return os.IsNotExist(err) || closedToUs(e.host)
}

// closedToUs reports whether a container engine is there, but not for this user.
func closedToUs(host string) bool {
	path, local := strings.CutPrefix(host, "unix://")
	if !local {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // nothing was written
	}
	return errors.Is(err, fs.ErrPermission)
}

func (e endpoint) local() bool { return strings.HasPrefix(e.host, "unix://") }

// check refuses ways to a container engine that others can listen to or answer on: whoever speaks in its name learns
// everything that goes in, and whoever speaks in ours is root there.
func (e endpoint) check() error {
	u, err := url.Parse(e.host)
	if err != nil {
		return sandbox.Errorf(sandbox.CodeConfig, "%s names %q, which is no address: %v", e.found, e.host, err)
	}
	switch u.Scheme {
	case "unix":
		return nil
	case "tcp", "https":
		if e.certs != "" || loopback(u.Hostname()) {
			return nil
		}
		return &sandbox.Error{
			Code: sandbox.CodeConfig, Text: fmt.Sprintf("%s names %s, which is reached over a network without TLS", e.found, e.host),
			Fix: "set " + client.EnvOverrideCertPath + " to the directory with ca.pem, cert.pem and key.pem",
		}
	}
	return &sandbox.Error{
		Code: sandbox.CodeConfig, Text: fmt.Sprintf("%s names %s, and %q is no way that Toolward knows", e.found, e.host, u.Scheme),
		Fix: "use unix:// or tcp:// with TLS; for ssh, forward the socket with ssh -L",
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
