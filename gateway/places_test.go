package gateway

import (
	"os/user"
	"slices"
	"testing"

	"github.com/toolward/toolward/sandbox/settings"
)

// Whoever starts the gateway with another HOME has keys in the home of the account all the same.
func TestSandboxesKeepKeysOfTheAccount(t *testing.T) {
	account, err := user.Current()
	if err != nil || account.HomeDir == "/" {
		t.Skip("this machine's accounts name no home directory")
	}
	t.Setenv("HOME", t.TempDir())
	if around := settings.OnThisMachine(t.TempDir()); !slices.Contains(around.OtherHomes, withoutLinks(account.HomeDir)) {
		t.Errorf("%s is not known as a home: %+v", account.HomeDir, around)
	}
}
