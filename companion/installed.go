package companion

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolward/toolward/hostdaemon"
)

// Libexec is where an administrator's installation puts the small programs.
const Libexec = "/usr/local/libexec/toolward"

// Installed is the small program that an administrator has installed; false if none was. One that others than root could have
// exchanged is an error, and nothing stands in for it: an agent's program in its place would run what it likes where confined
// commands are expected.
func Installed(name string) (Program, bool, error) {
	small := Program{Path: filepath.Join(Libexec, name)}
	big := Program{Path: filepath.Join(Libexec, "toolward"), Args: []string{strings.TrimPrefix(name, prefix)}}
	for _, program := range []Program{small, big} {
		exists, err := hostdaemon.RootsAlone(program.Path)
		if err != nil {
			return Program{}, false, fmt.Errorf("find %s: %w", name, err)
		}
		if exists {
			return program, true, nil
		}
	}
	return Program{}, false, nil
}
