package place

import "golang.org/x/sys/unix"

// renameNoReplace moves a name and fails with EEXIST when the target exists.
func renameNoReplace(source int, name string, into int, target string) error {
	err := unix.Renameat2(source, name, into, target, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return renameByLink(source, name, into, target) // a file system without the flag
	}
	return err
}
