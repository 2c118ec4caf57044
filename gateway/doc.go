// Package gateway is the composition root: it alone knows every room, opens each of them with what it needs of the others,
// and puts a configuration in force in all of them.
package gateway
