package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolward/toolward/config"
	"github.com/toolward/toolward/store"
)

// Bits of modes.
const (
	groupReads, worldReads   = 0o040, 0o004
	groupWrites, worldWrites = 0o020, 0o002
	othersRead               = groupReads | worldReads
	othersWrite              = groupWrites | worldWrites
)

// files looks at the state directory and everything that lies in it.
func (e *examination) files() error {
	info, err := os.Lstat(e.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is there yet
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		e.find("fs.state_dir.symlink", "set TOOLWARD_HOME to where it leads", "%s is a symbolic link: whoever can change it can put another directory in its place", e.Home)
		if info, err = os.Stat(e.Home); err != nil {
			return err
		}
	}
	e.stateDir(info)
	if service := syncedBy(e.Home); service != "" {
		e.find("fs.synced_dir", "move it: set TOOLWARD_HOME to a directory of this machine alone", "%s lies in a folder of %s: keys and records are copied to it", e.Home, service)
	}
	entries, err := os.ReadDir(e.Home)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := e.stateFile(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (e *examination) stateDir(info fs.FileInfo) {
	mode := info.Mode().Perm()
	hint := "chmod 700 " + e.Home
	switch {
	case mode&worldWrites != 0:
		e.tighten(e.Home, mode, 0o700, "fs.state_dir.perms_world_writable", hint, "everybody on this machine can exchange its files")
	case mode&groupWrites != 0:
		e.tighten(e.Home, mode, 0o700, "fs.state_dir.perms_group_writable", hint, "its group can exchange its files")
	case mode&othersRead != 0:
		e.tighten(e.Home, mode, 0o700, "fs.state_dir.perms_readable", hint, "others can list its files")
	}
	parent := filepath.Dir(e.Home)
	if above, err := os.Stat(parent); err == nil && above.Mode().Perm()&worldWrites != 0 && above.Mode()&fs.ModeSticky == 0 {
		e.find("fs.state_dir.perms_world_writable", "chmod o-w "+parent, "%s, above it, has mode %04o: everybody on this machine can put another directory in its place", parent, above.Mode().Perm())
	}
}

// tighten reports a mode, and narrows it where that was asked for. Links are never followed to change something.
func (e *examination) tighten(path string, mode, want fs.FileMode, id, hint, why string) {
	detail := fmt.Sprintf("%s has mode %04o: %s", path, mode, why)
	if e.Fix {
		err := narrow(path, mode, mode&want)
		if err == nil {
			e.fixed = append(e.fixed, fmt.Sprintf("%s: %s: mode %04o is now %04o", id, path, mode, mode&want))
			return
		}
		detail += fmt.Sprintf("; it could not be mended: %v", err)
	}
	e.find(id, hint, "%s", detail)
}

// narrow sets the mode of a file or directory that has the mode it was seen with. While others can still exchange what
// lies at the path, a link could lead the change to a file of their choice.
func narrow(path string, seen, mode fs.FileMode) (err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != seen {
		return errors.New("it was exchanged meanwhile")
	}
	return f.Chmod(mode)
}

// stateFile looks at one file of the state directory.
func (e *examination) stateFile(name string) error {
	path := filepath.Join(e.Home, name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went away meanwhile
	}
	if err != nil {
		return err
	}
	configuration := name == config.FileName
	if info.Mode()&fs.ModeSymlink != 0 {
		if configuration {
			e.find("fs.config.symlink", "put the file itself there", "%s is a symbolic link: whoever can change what it leads to changes the configuration", path)
			if target, err := os.Stat(path); err == nil {
				real, err := filepath.EvalSymlinks(path)
				if err != nil {
					return err
				}
				e.configuration("fs.config", real, target.Mode().Perm())
			}
		}
		return nil
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	mode, hint := info.Mode().Perm(), "chmod 600 "+path
	switch database := strings.HasPrefix(name, store.FileName); {
	case configuration:
		e.configuration("fs.config", path, mode)
	case name == e.file.TEG.Shadow && name != "":
		e.configuration("fs.config_include", path, mode)
	case mode&othersWrite != 0:
		e.tighten(path, mode, 0o700, "fs.auth_profiles.perms_writable", hint, "others can change what the gateway relies on")
	case mode&othersRead != 0 && database:
		e.tighten(path, mode, 0o700, "fs.sessions_store.perms_readable", hint, "others can read what agents did and what people answered")
	case mode&othersRead != 0:
		e.tighten(path, mode, 0o700, "fs.auth_profiles.perms_readable", hint, "others can read it")
	}
	return nil
}

// configuration looks at the mode of a configuration file; prefix is that of the ids.
func (e *examination) configuration(prefix, path string, mode fs.FileMode) {
	hint := "chmod 600 " + path
	switch {
	case mode&othersWrite != 0:
		e.tighten(path, mode, 0o700, prefix+".perms_writable", hint, "others can change it")
	case mode&worldReads != 0:
		e.tighten(path, mode, 0o700, prefix+".perms_world_readable", hint, "everybody on this machine sees what is not guarded")
	case mode&groupReads != 0:
		e.tighten(path, mode, 0o700, prefix+".perms_group_readable", hint, "its group sees what is not guarded")
	}
}

// syncedFolders are parts of paths that belong to services which copy what lies below.
var syncedFolders = map[string]string{
	"dropbox": "Dropbox", "onedrive": "OneDrive", "google drive": "Google Drive", "googledrive": "Google Drive", "nextcloud": "Nextcloud",
	"owncloud": "ownCloud", "mobile documents": "iCloud", "cloudstorage": "a cloud service", "icloud drive": "iCloud", "pcloud drive": "pCloud", "sync": "Sync",
	"syncthing": "Syncthing", "box": "Box", "box sync": "Box", "mega": "MEGA", "seafile": "Seafile",
}

// syncedBy names the service that copies a directory; "" if none is known to.
func syncedBy(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for part := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		name, _, _ := strings.Cut(strings.ToLower(part), " - ") // "OneDrive - Company"
		if service := syncedFolders[name]; service != "" {
			return service
		}
	}
	return ""
}

// programs looks at the programs of plug-ins: who can change one answers for the guard.
func (e *examination) programs() error {
	for _, path := range e.file.Plugins.Files() {
		info, err := os.Stat(path)
		if err != nil {
			continue // it is not there: nobody can answer with it, and agents cannot put it there
		}
		if mode := info.Mode().Perm(); mode&othersWrite != 0 {
			e.tighten(path, mode, ^fs.FileMode(othersWrite)&fs.ModePerm, "plugins.code_safety.writable", "chmod go-w "+path, "others can change a program that judges calls")
		}
	}
	return nil
}
