//go:build !race

package attacks

const slowedDown = 1
