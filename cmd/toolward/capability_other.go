//go:build !linux

package main

import (
	"errors"
	"runtime"
)

func keepLooking() (bool, error) {
	return false, errors.New("a gateway with a user of its own needs Linux, not " + runtime.GOOS)
}
