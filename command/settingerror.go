package command

import (
	"fmt"

	"github.com/toolward/toolward/envname"
)

// SettingError says what is wrong with a setting about commands, or what of it is ignored.
type SettingError struct {
	Key  string // path below "tools", such as exec.rules[2].match[0]
	Text string
}

type settingErrors []SettingError

func (e *settingErrors) add(key, format string, args ...any) {
	*e = append(*e, SettingError{key, fmt.Sprintf(format, args...)})
}

// memberKey continues a path by a name.
func memberKey(name string) string {
	if envname.Portable(name) {
		return "." + name
	}
	return fmt.Sprintf("[%q]", name)
}
