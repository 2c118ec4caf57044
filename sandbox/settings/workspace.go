package settings

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolward/toolward/sandbox"
)

const (
	// plainUser runs what would otherwise run as root.
	plainUser   = 10001
	maxSeedFile = 1 << 20
)

// seeds are the files that tell an agent who it is. A private directory begins with the workspace's.
var seeds = []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md", "HEARTBEAT.md"}

// preparePrivate makes the private directory of a sandbox and returns it. It belongs to user, and nobody else gets in.
func preparePrivate(workspaceRoot, name, agentDir string, user *sandbox.User) (string, error) {
	if err := os.MkdirAll(workspaceRoot, 0o700); err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "make the directory of sandboxes: %v", err)
	}
	root, err := os.OpenRoot(workspaceRoot)
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "open the directory of sandboxes: %v", err)
	}
	defer root.Close()
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", sandbox.Errorf(sandbox.CodeFailed, "make the private directory: %v", err)
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return "", sandbox.Errorf(sandbox.CodeFailed, "%s is not a directory", filepath.Join(workspaceRoot, name))
	}
	// What is inside was written by the sandbox: nothing is done there by path but below this root.
	dir, err := root.OpenRoot(name)
	if err != nil {
		return "", sandbox.Errorf(sandbox.CodeFailed, "open the private directory: %v", err)
	}
	defer dir.Close()
	if err := giveTo(root, name, user); err != nil {
		return "", err
	}
	if agentDir != "" {
		seed(dir, agentDir, user)
	}
	return filepath.Join(workspaceRoot, name), nil
}

// giveTo makes a file the user's. Only root can; for others it is theirs already, or an engine maps it.
func giveTo(dir *os.Root, name string, user *sandbox.User) error {
	if user == nil || os.Geteuid() != 0 {
		return nil
	}
	if err := dir.Lchown(name, user.UID, user.GID); err != nil {
		return sandbox.Errorf(sandbox.CodeFailed, "give the private directory to %d:%d: %v", user.UID, user.GID, err)
	}
	return nil
}

// seed copies the files that are missing. One that cannot be copied is left out: it is a convenience.
func seed(to *os.Root, agentDir string, user *sandbox.User) {
	from, err := os.OpenRoot(agentDir)
	if err != nil {
		return
	}
	defer from.Close()
	for _, name := range seeds {
		content, err := readSeed(from, name)
		if err != nil {
			continue
		}
		f, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			continue
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close(), giveTo(to, name, user)); err != nil {
			_ = to.Remove(name)
		}
	}
}

// readSeed reads a regular file. A symbolic link could show the sandbox any file of the host.
func readSeed(from *os.Root, name string) ([]byte, error) {
	if info, err := from.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	f, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxSeedFile {
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxSeedFile+1))
	if len(content) > maxSeedFile {
		return nil, fs.ErrInvalid
	}
	return content, err
}
