//go:build unix && !linux

package place

// renameNoReplace moves a name and fails with EEXIST when the target exists.
func renameNoReplace(source int, name string, into int, target string) error {
	return renameByLink(source, name, into, target)
}
