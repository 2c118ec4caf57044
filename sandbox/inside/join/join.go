// Package join makes a Unix socket the channel of the program inside, where its engine cannot hand one over: it is
// started by a container engine, and listens to nobody.
package join

// Argument stands before the path of the socket and what starts the program inside.
const Argument = "join"
