package undo

import (
	"os"
	"strings"
)

// bootID names this run of the system; "" if nobody knows.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
