package setup

// ForwardArgument stands before what starts the program inside where the forwarder shall run in it.
const ForwardArgument = "forward"
