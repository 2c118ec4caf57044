package hostdaemon

// Read reads a file as File is read.
var Read = read
