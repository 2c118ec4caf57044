package settings

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/toolward/toolward/sandbox"
)

// FileSystem tells what stands at paths of the host, as far as symbolic links go.
type FileSystem interface {
	// ReadLink returns the text of a symbolic link. Where something else stands, or nothing, link is false.
	ReadLink(path string) (target string, link bool, err error)
}

// Host is the file system of this machine.
var Host FileSystem = hostFiles{}

type hostFiles struct{}

func (hostFiles) ReadLink(name string) (string, bool, error) {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return "", false, err
	}
	target, err := os.Readlink(name)
	return target, err == nil, err
}

// maxLinks bounds how many symbolic links one path leads through.
const maxLinks = 40

// Resolve follows the symbolic links in a clean absolute path. What is missing stays as it is written, so that a path
// tells where it will lead once it exists; a link to something missing is followed too.
func Resolve(files FileSystem, p string) (string, error) {
	if files == nil {
		return p, nil
	}
	done, rest := "/", strings.TrimPrefix(p, "/")
	for links := 0; rest != ""; {
		name, after, _ := strings.Cut(rest, "/")
		rest = after
		switch name {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, name)
		target, link, err := files.ReadLink(next)
		if err != nil {
			return "", err
		}
		if !link {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", sandbox.Errorf(sandbox.CodeConfig, "%s: too many symbolic links", p)
		}
		if path.IsAbs(target) {
			done = "/"
		}
		rest = target + "/" + rest
	}
	return done, nil
}
