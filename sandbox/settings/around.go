package settings

import (
	"os"
	"os/user"
	"path/filepath"

	"github.com/toolward/toolward/companion"
	"github.com/toolward/toolward/netguard/registries"
	"github.com/toolward/toolward/place"
)

// OnThisMachine is what the configuration does not say about the sandboxes of a Toolward home. A home directory that cannot be
// found is "": the rules about what lies in it have nothing to protect then. HOME may say anything, as in a service that was
// given another one; the keys stay where the machine's accounts say that the user's home is.
func OnThisMachine(stateDir string) Surroundings {
	home, _ := os.UserHomeDir()
	around := Surroundings{
		StateDir: withoutLinks(stateDir), Home: withoutLinks(home), FoldCase: place.FoldsCase(stateDir), Programs: append(place.OwnPrograms(), companion.Libexec),
		Person: thisPerson(home),
	}
	around.Registries = registries.Find(registries.Machine{Home: home, Getenv: os.Getenv})
	if dir, err := companion.Directory(); err == nil {
		// Beside the small programs lie the filters and the doors of containers.
		around.Programs = append(around.Programs, dir, filepath.Dir(dir))
	}
	if account, err := user.Current(); err == nil && filepath.IsAbs(account.HomeDir) && account.HomeDir != "/" {
		if other := withoutLinks(account.HomeDir); other != around.Home {
			around.OtherHomes = []string{other}
		}
	}
	return around
}

// withoutLinks is the real path of a directory, or the path itself where it cannot be followed.
func withoutLinks(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}
