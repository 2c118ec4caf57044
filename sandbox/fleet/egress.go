package fleet

// Egress is the gateway's proxy, which programs in sandboxes with the network egress reach and nothing else.
type Egress interface {
	// Open has it listen for the sandbox of a name, and returns the directory that holds the socket. It is mounted in that
	// sandbox only, so that the proxy knows by the socket who calls. Opening again gives the same directory.
	Open(name string) (dir string, err error)
	// Close ends that, with all connections. What was not opened is no mistake.
	Close(name string)
	// Outlived says which sandboxes go on, or have gone on, without a gateway, and which sessions have used each: their
	// directories stay, those of all others that are not open go. What the sessions have left in them acts in their names.
	Outlived(sessions map[string][]Former)
}

// Former is a session that has used a sandbox under an earlier gateway.
type Former struct {
	Agent   string `json:"agentId"`
	Session string `json:"sessionKey"`
}
