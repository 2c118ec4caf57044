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
	// toldName is where such files of ours are, in the directory of private directories.
	toldName = "told"
)

// shownFile is a small file or directory of ours, or a file of the system, that a sandbox sees.
type shownFile struct {
	source, target string
	ours, dir      bool
	content        string
}

// systemFiles tell git who commits, and a container who works in it and what time it is there: an image does not know. A set-up
// command may add users of its own. What has the same content is the same file, which stays: sandboxes have it mounted.
func (r *Resolved) systemFiles(engine string, s *sandbox.Spec) (files []shownFile, err error) {
	dir, err := Resolve(r.settings.around.Files, filepath.Join(r.WorkspaceRoot, toldName))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.CodeFailed, "find the files about the user: %v", err)
	}
	ours := func(content, target string) shownFile {
		return shownFile{filepath.Join(dir, Hash(content)[:16], filepath.Base(target)), target, true, false, content}
	}
	files = append(files, ours(r.settings.around.Person.Git.config(s.Workdir), gitConfigTarget))
	if engine != sandbox.EngineDocker {
		return files, nil
	}
	if s.Setup == "" && !s.Writable {
		passwd, group := s.Account.Files(s.User.UID, s.User.GID)
		files = append(files, ours(passwd, "/etc/passwd"), ours(group, "/etc/group"))
	}
	if zone, err := filepath.EvalSymlinks(localTime); err == nil && place.Within(zone, zoneFiles) && len(s.Docker.HostPaths) == 0 {
		files = append(files, shownFile{source: zone, target: localTime})
	}
	return files, nil
}

func (f shownFile) mount() sandbox.Mount {
	return sandbox.Mount{Kind: sandbox.MountSystem, Source: f.source, Target: f.target}
}

// nothing is what stands in the place of a file with credentials, by what programs expect there: Maven does not start with
// settings that are no XML.
var nothing = map[string]string{".xml": "<settings/>\n", ".json": "{}\n", "": "\n"}

// hiding puts nothing in the place of what holds credentials.
func hiding(dir string, hidden []string) (files []shownFile) {
	for _, target := range hidden {
		f := shownFile{source: filepath.Join(dir, "none", "directory"), target: target, ours: true, dir: true}
		if info, err := os.Lstat(target); err != nil || !info.IsDir() {
			end := filepath.Ext(target)
			if _, known := nothing[end]; !known {
				end = ""
			}
			f = shownFile{source: filepath.Join(dir, "none", "file"+end), target: target, ours: true, content: nothing[end]}
		}
		files = append(files, f)
	}
	return files
}

// showSystem writes the files, and shows them. Where nothing can be mounted, git is told the path.
func (r *Resolved) showSystem(engine string, p *Plan) error {
	s := p.Spec
	files, err := r.systemFiles(engine, s)
	if err != nil {
		return err
	}
	told := filepath.Dir(filepath.Dir(files[0].source))
	for i, f := range append(files, hiding(told, p.hidden)...) {
		if p.InPlace && i == 0 {
			f.target = f.source
			s.Env = append([]string{"GIT_CONFIG_SYSTEM=" + f.source}, s.Env...)
		}
		m := f.mount()
		switch {
		case f.dir:
			err = os.MkdirAll(f.source, 0o755)
		case f.ours:
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
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)) // others may be writing the same
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
	}
	return err
}
