package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// FileName is the configuration file's name in the home.
const FileName = "toolward.jsonc"

// Home returns the state directory: given, else TOOLWARD_HOME, else ~/.toolward. It need not exist.
func Home(given string) (string, error) {
	if given == "" {
		given = os.Getenv("TOOLWARD_HOME")
	}
	if given == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("no home directory: set TOOLWARD_HOME")
		}
		given = filepath.Join(user, ".toolward")
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("home %s: %w", given, err)
	}
	return abs, nil
}
