package hostdaemon

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

const (
	before = "uid "
	middle = " socket "
	// largest is how much of the file is read: its one line is shorter.
	largest = 256
)

// Line is the whole content of File for this daemon.
func (d Daemon) Line() string { return before + number(d.UID) + middle + d.Socket + "\n" }

// Parse reads the content of File: exactly what Line writes, and nothing else.
func Parse(text string) (Daemon, error) {
	digits, path, ok := "", "", false
	if len(text) > len(before) && text[:len(before)] == before {
		digits, path, ok = cut(text[len(before):])
	}
	if !ok || path[len(path)-1] != '\n' {
		return Daemon{}, errors.New(`it must be the one line "uid NUMBER socket PATH"`)
	}
	path = path[:len(path)-1]
	uid, err := strconv.ParseUint(digits, 10, 32)
	// The highest number means "no user" to the kernel.
	if err != nil || uid == 1<<32-1 {
		return Daemon{}, errors.New("the number of its user is none")
	}
	if !clean(path) {
		return Daemon{}, errors.New("the path of its socket must be absolute, without . and .., and of at most " + strconv.Itoa(maxSocket) + " printable characters")
	}
	d := Daemon{UID: uint32(uid), Socket: path, System: true}
	if d.Line() != text { // a number can be written in several ways
		return Daemon{}, errors.New("the number of its user is written oddly")
	}
	return d, nil
}

// cut divides a line at its middle word.
func cut(s string) (number, path string, ok bool) {
	for i := 0; i+len(middle) < len(s); i++ {
		if s[i:i+len(middle)] == middle {
			return s[:i], s[i+len(middle):], true
		}
	}
	return "", "", false
}

// clean reports whether a path leads to one place by names alone, and cannot be mistaken for another when it is read.
func clean(path string) bool {
	if len(path) > maxSocket || len(path) < 2 || path[0] != '/' {
		return false
	}
	start := 1
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			if path[i] <= ' ' || path[i] > '~' {
				return false
			}
			continue
		}
		if name := path[start:i]; name == "" || name == "." || name == ".." {
			return false
		}
		start = i + 1
	}
	return true
}

// read reads what names the machine's daemon; false if there is no such file. Only root may be able to make, change or move
// it: whoever else could would choose the daemon that says yes to an agent.
func read(path string) (d Daemon, ok bool, err error) {
	if ok, err := parents(path); err != nil || !ok {
		return Daemon{}, false, err
	}
	// Only root could put something else there after the directories were looked at.
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	switch err {
	case nil:
	case syscall.ENOENT:
		return Daemon{}, false, nil
	case syscall.ELOOP:
		return Daemon{}, false, odd(path, "is a link")
	default:
		return Daemon{}, false, odd(path, "cannot be opened ("+err.Error()+")")
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Daemon{}, false, odd(path, "cannot be looked at ("+err.Error()+")")
	}
	if !info.Mode().IsRegular() {
		return Daemon{}, false, odd(path, "is no plain file")
	}
	if what := changeable(info); what != "" {
		return Daemon{}, false, odd(path, what)
	}
	text := make([]byte, largest)
	n := 0
	for n < len(text) {
		more, err := file.Read(text[n:])
		if n += more; err != nil || more == 0 {
			break // what is missing makes it no whole line
		}
	}
	if d, err = Parse(string(text[:n])); err != nil {
		return Daemon{}, false, odd(path, "is not understood: "+err.Error())
	}
	return d, true, nil
}

// parents looks at every directory that leads to a file, from the root: while those above are root's alone, nobody else can
// exchange the next. The file's own directory missing means that there is no file.
func parents(path string) (ok bool, err error) {
	var first error
	for i := range len(path) {
		if path[i] != '/' {
			continue
		}
		dir := path[:max(i, 1)]
		info, err := os.Lstat(dir)
		if errors.Is(err, syscall.ENOENT) {
			return false, nil
		}
		if err != nil {
			return false, odd(dir, "cannot be looked at ("+err.Error()+")")
		}
		what := changeable(info)
		if !info.IsDir() {
			what = "is no directory, or a link"
		}
		if what != "" && first == nil {
			first = odd(dir, what)
		}
	}
	return first == nil, first
}

// RootsAlone reports whether something exists that only root can change, exchange or move away. An error says what of it, or of a
// directory above it, is otherwise, and how it is mended. A link is nothing that can be relied on.
func RootsAlone(path string) (exists bool, err error) {
	if ok, err := parents(path); err != nil || !ok {
		return false, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, odd(path, "cannot be looked at ("+err.Error()+")")
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return false, odd(path, "is a link")
	}
	if what := changeable(info); what != "" {
		return false, odd(path, what)
	}
	return true, nil
}

// changeable says what lets others than root change a file or directory; "" if nothing does. The rights of a group stand for
// those of access lists, too.
func changeable(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || stat.Uid != 0:
		return "does not belong to root"
	case info.Mode().Perm()&0o022 != 0:
		return "can be written by others than root"
	}
	return ""
}

// odd says what is wrong with the file or a directory above it.
func odd(path, what string) error {
	return &UntrustedError{path + " " + what + ", so it cannot be trusted. The administrator must look at it (ls -ld " + path +
		") and mend it: it and all above it must be root's alone to write, and no links"}
}
