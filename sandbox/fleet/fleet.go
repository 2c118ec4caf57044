// Package fleet has the sandboxes of one Toolward home.
//
// A [Manager] makes a sandbox when a call needs one, leases it, makes it anew when the settings say something else by then, and
// ends the sandboxes that nobody uses. A [Registry] remembers them on the disk, a [Machine] what this machine can do, and what
// outlives a gateway is judged again by the next one. After commands the manager looks for protected files that they have made.
package fleet
