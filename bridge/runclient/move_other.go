//go:build !linux

package runclient

func enlarge(int) {}

func moveAll(int, int) bool { return false }
