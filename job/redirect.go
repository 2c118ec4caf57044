//go:build unix

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// redirect carries out the redirections of a member from left to right, as far as they succeed.
func (m *member) redirect() error {
	for i := range m.Redirects {
		r := &m.Redirects[i]
		if r.kind == copyOf {
			m.streams[r.fd] = m.streams[r.from]
			continue
		}
		f, err := r.file()
		if err != nil {
			reported, refusal := report(r.name, err)
			if refusal != nil {
				return refusal
			}
			complain(m.streams[2], reported)
			m.status = exited(statusFailed)
			return nil
		}
		m.owned = append(m.owned, f)
		m.streams[r.fd] = f
		if r.kind == bothToFile {
			m.streams[2] = f
		}
	}
	return nil
}

func (r *Redirect) file() (*os.File, error) {
	if r.kind == document {
		return documentFile(r.body)
	}
	f, err := r.open()
	if err == nil && f == nil {
		err = errors.New("it was not opened")
	}
	return f, err
}

// reportable are the errors of opening a file that are an answer of the system and no doubt.
var reportable = []syscall.Errno{
	unix.ENOENT, unix.EACCES, unix.EPERM, unix.EISDIR, unix.ENOTDIR, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EFBIG,
	unix.ENAMETOOLONG, unix.ENXIO, unix.ETXTBSY, unix.EMFILE, unix.ENFILE,
}

// report tells an error that a shell would only report from a refusal. The code must stand in the error itself: a
// place check wraps the code by which the system told it of a symbolic link.
func report(name string, err error) (reported, refusal error) {
	var path *fs.PathError
	if errors.As(err, &path) {
		if code, ok := path.Err.(syscall.Errno); ok && slices.Contains(reportable, code) {
			return fmt.Errorf("%s: %w", name, code), nil
		}
		if path.Err == fs.ErrNotExist { // see above
			return fmt.Errorf("%s: %w", name, unix.ENOENT), nil
		}
	}
	return nil, &Refusal{What: name, Err: err}
}
