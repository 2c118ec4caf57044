// Package api is the HTTP API: one row for each route, with what its caller does there. docs/api.md is its
// reference. It is the same for a signed-in browser and for a command at the local socket.
package api
