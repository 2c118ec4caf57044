package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolward/toolward/sandbox"

	"github.com/toolward/toolward/place"
)

const (
	localTime = "/etc/localtime"
	zoneFiles = "/usr/share/zoneinfo"
	// accountsName is where the lists of users are, in the directory of private directories.
	accountsName = "accounts"
)

// shownFile is a small file of ours, or of the system, that a container sees.
type shownFile struct{ source, target, content string }

// systemFiles tell a container who works in it, and what time it is there: an image does not know. A set-up command may add
// users of its own. Lists of the same content are the same file, which stays: containers have it mounted.
func (r *Resolved) systemFiles(s *sandbox.Spec) (files []shownFile, err error) {
	if s.Setup == "" && !s.Writable {
		passwd, group := s.Account.Files(s.User.UID, s.User.GID)
		dir, err := Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, accountsName, Hash(passwd)[:16]))
		if err != nil {
			return nil, sandbox.Errorf(sandbox.CodeFailed, "find the lists of users: %v", err)
		}
		files = append(files, shownFile{filepath.Join(dir, "passwd"), "/etc/passwd", passwd}, shownFile{filepath.Join(dir, "group"), "/etc/group", group})
	}
	if zone, err := filepath.EvalSymlinks(localTime); err == nil && place.Within(zone, zoneFiles) && len(s.Docker.HostPaths) == 0 {
		files = append(files, shownFile{source: zone, target: localTime})
	}
	return files, nil
}

func (f shownFile) mount() sandbox.Mount {
	return sandbox.Mount{Kind: sandbox.MountBind, Source: f.source, Target: f.target}
}

// showSystem writes the files, and shows them.
func (r *Resolved) showSystem(s *sandbox.Spec) error {
	files, err := r.systemFiles(s)
	if err != nil {
		return err
	}
	for _, f := range files {
		m := f.mount()
		if f.content != "" {
			err = keepFile(f.source, f.content)
		}
		if err == nil {
			m.Pinned, err = pin(f.source)
		}
		if err != nil {
			return sandbox.Errorf(sandbox.CodeFailed, "tell the sandbox who works in it: %v", err)
		}
		s.Mounts = append(s.Mounts, m)
	}
	return nil
}

// keepFile writes a file in a directory that is ours alone, once. It is never written over while somebody has it mounted.
func keepFile(name, content string) error {
	if have, err := os.ReadFile(name); err == nil && string(have) == content {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(name)), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	temporary := name + ".new"
	if err := os.WriteFile(temporary, []byte(content), 0o644); err != nil {
		return err
	}
	return errors.Join(os.Chmod(temporary, 0o644), os.Rename(temporary, name))
}
