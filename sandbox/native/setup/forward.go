package setup

import "strings"

// forwardArgument stands before what starts the program inside where the forwarder shall run in it. After a colon stand the
// "host:port" that it passes on from the same port, with commas between them.
const forwardArgument = "forward"

// ForwardTo is the argument that has the program inside run the forwarder.
func ForwardTo(targets []string) string {
	if len(targets) == 0 {
		return forwardArgument
	}
	return forwardArgument + ":" + strings.Join(targets, ",")
}

// ForwardsOf reads such an argument.
func ForwardsOf(argument string) (targets []string, ok bool) {
	name, list, _ := strings.Cut(argument, ":")
	if name != forwardArgument {
		return nil, false
	}
	if list != "" {
		targets = strings.Split(list, ",")
	}
	return targets, true
}
