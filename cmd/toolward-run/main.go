// Command toolward-run stands in a guarded agent's shell where one of its commands was: it has the daemon start that command,
// confined, and carries its streams and its end. "toolward run" is the same in the big binary, slower to start.
package main

import (
	"os"

	"github.com/toolward/toolward/bridge/runclient"
)

func main() { os.Exit(runclient.Main(os.Args[1:])) }
